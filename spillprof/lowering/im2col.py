"""The matrices of im2col: the number of blocks of output positions in which each is built and multiplied.

A matrix is large and live for one step, so it cannot be spilled: one that does not fit is built in blocks, one after
another at the same address, at one launch each. The number of blocks grows

- until a block stays under a limit, half of the SRAM at most;
- further, until a block fits beside all live buffers without evictions, as long as one more launch costs less time
  than it saves: writing back and reloading the bytes by which a block shrinks. For n blocks of M bytes together, those
  are M / (n - 1) - M / n.

A shared workspace block exists for the whole run: the fullest step decides its size, and smaller matrices are not split
further than needed for it. In either case accumulators are stored beside the matrix.
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
    """Peak bytes of the step's other workspaces in the phases of the matrix, READ and COMPUTE."""
    return max(
        sum(w.size_bytes for w in step.workspaces if w.first <= phase <= w.last)
        for phase in (Phase.READ, Phase.COMPUTE)
    )


def free_bytes(program: Program, target: Target, options: LoweringOptions) -> list[int]:
    """Free bytes of each step for a matrix, beside live buffers and weights; negative if something must be evicted.

    A shared block must be free in every step, and holds the step's other workspaces too.
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
    """The number of blocks of a matrix: see the module's docstring."""
    needed, wanted = matrix.fewest_blocks(limit_bytes), matrix.fewest_blocks(free)
    if target.launch_overhead_s <= 0:
        return max(needed, wanted)
    round_trip_s = 1 / target.dram_read_bytes_per_s + 1 / target.dram_write_bytes_per_s  # of a byte
    worth = matrix.nbytes(1) * round_trip_s / target.launch_overhead_s  # n (n - 1) at most
    return max(needed, min(wanted, int((1 + math.sqrt(1 + 4 * worth)) / 2)))


def _size(matrix: Matrix, blocks: int, target: Target) -> int:
    return align(matrix.nbytes(blocks), target.alignment_bytes)
