"""The matrices of im2col: in how many blocks of output positions each is made and multiplied.

A matrix is large and lives for one step. Sent off-chip it would be missed at once, so what does not fit is made in
blocks, one after another in the same place, at one launch each. Blocks are cut

- until they stay under a limit, half of the SRAM at most;
- further, until nothing has to leave for one: it fits beside all that is live. But no further than a launch more takes
  less time than it saves: that of the bytes that a block gets smaller by, written back and reloaded once. Of n blocks
  of M bytes together, those are M / (n - 1) - M / n.

Where all workspaces share one block of memory, that is there for the whole run: blocks are cut by the fullest step,
and what is smaller than the largest is not cut for nothing. In either case accumulators lie beside the matrix.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from spillprof.ir.program import BufferKind, Convolution, Phase, Program, Step, Workspace, largest_phase_bytes
from spillprof.ir.target import Target
from spillprof.lowering.convolution import Matrix
from spillprof.lowering.fitting import reservations_of, workspace_block_bytes
from spillprof.lowering.layout import align
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.liveness import live_bytes_by_step


def with_matrices(
    program: Program,
    matrices: Mapping[int, Matrix],
    target: Target,
    options: LoweringOptions,
    limits: Mapping[int, int] | None = None,
) -> Program:
    """The program with the matrix of each given step as a workspace of it, in blocks under the step's limit.

    Without ``limits`` that is half of the SRAM.
    """
    if not matrices:
        return program
    free, half = free_bytes(program, target, options), target.sram_bytes // 2
    most = limits or dict.fromkeys(matrices, half)
    blocks = {i: _blocks(matrix, most[i], free[i], target) for i, matrix in matrices.items()}
    if target.shared_workspace:
        beside = {i: _beside_bytes(program.steps[i]) for i in matrices}
        largest = max(
            workspace_block_bytes(program, target),
            *(_size(matrices[i], n, target) + beside[i] for i, n in blocks.items()),
        )
        blocks = {i: matrix.fewest_blocks(largest - beside[i]) for i, matrix in matrices.items()}
    steps = list(program.steps)
    for i, matrix in matrices.items():
        step, nbytes = steps[i], _size(matrix, blocks[i], target)
        space = Workspace(purpose="im2col", size_bytes=nbytes, first=Phase.READ, last=Phase.COMPUTE)
        spaces = (space, *step.workspaces)
        made = None if step.convolution is None else _in_blocks(step.convolution, spaces, blocks[i])
        steps[i] = replace(step, workspaces=spaces, convolution=made, launches=blocks[i])
    return replace(program, steps=tuple(steps))


def _in_blocks(convolution: Convolution, spaces: Sequence[Workspace], blocks: int) -> Convolution:
    return replace(convolution, workspace_bytes=largest_phase_bytes(spaces), blocks=blocks)


def _beside_bytes(step: Step) -> int:
    """What the step's other workspaces hold at most while the matrix is there, in READ and COMPUTE."""
    return max(
        sum(w.size_bytes for w in step.workspaces if w.first <= phase <= w.last)
        for phase in (Phase.READ, Phase.COMPUTE)
    )


def free_bytes(program: Program, target: Target, options: LoweringOptions) -> list[int]:
    """What each step leaves for a matrix beside all that is live and its weights; below 0 where something must leave.

    A shared block has to be free in every step, and holds the step's other workspaces too.
    """
    reserved = sum(r.size_bytes for r in reservations_of(program, target, options, target.sram_bytes))
    pool = target.sram_bytes - reserved
    shared = target.shared_workspace
    weights = (
        sum(program.buffers[b].size_bytes for b in step.reads if program.buffers[b].kind is BufferKind.WEIGHT)
        for step in program.steps
    )
    live = live_bytes_by_step(program, stored=True, workspaces=not shared).tolist()
    free = [pool - nbytes - own for nbytes, own in zip(live, weights, strict=True)]
    if shared:
        block = min(free) + workspace_block_bytes(program, target)
        return [block - _beside_bytes(step) for step in program.steps]
    return free


def _blocks(matrix: Matrix, limit_bytes: int, free: int, target: Target) -> int:
    """In how many blocks a matrix is made: see the head of this module."""
    needed, wanted = matrix.fewest_blocks(limit_bytes), matrix.fewest_blocks(free)
    if target.launch_overhead_s <= 0:
        return max(needed, wanted)
    round_trip_s = 1 / target.dram_read_bytes_per_s + 1 / target.dram_write_bytes_per_s  # of a byte
    worth = matrix.nbytes(1) * round_trip_s / target.launch_overhead_s  # n (n - 1) at most
    return max(needed, min(wanted, int((1 + math.sqrt(1 + 4 * worth)) / 2)))


def _size(matrix: Matrix, blocks: int, target: Target) -> int:
    return align(matrix.nbytes(blocks), target.alignment_bytes)
