"""The matrices of im2col: in how many blocks of rows each is made and multiplied.

A matrix is large and lives for one step. Sent off-chip it would be missed at once, so what does not fit is made in
blocks, one after another in the same place, at one launch each. Blocks are cut

- until they stay under half of the SRAM, and the operands of the step fit beside one;
- further, until nothing else has to leave for one: it fits beside all that is live. That is given up where one launch
  more takes longer than what it saves: the bytes that the block gets smaller by, written back and reloaded once.

Where all workspaces share one block of memory, that is there for the whole run: blocks are cut by the fullest step,
and what is smaller than the largest is not cut for nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spillprof.lowering.convolution import Matrix
from spillprof.lowering.fitting import reservations_of, workspace_block_bytes
from spillprof.lowering.layout import align
from spillprof.lowering.options import LoweringOptions
from spillprof.model.program import BufferKind, Convolution, Phase, Program, Workspace
from spillprof.model.target import Target
from spillprof.planning.liveness import live_bytes_by_step, step_demand_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    """Bytes for a block."""

    at_most: int
    free: int  # without anything else having to leave


def with_matrices(
    program: Program, matrices: Mapping[int, Matrix], target: Target, options: LoweringOptions
) -> Program:
    """The program with the matrix of each given step as a workspace of it, in blocks."""
    if not matrices:
        return program
    rooms = _rooms(program, matrices, target, options)
    blocks = {i: _blocks(matrix, rooms[i], target) for i, matrix in matrices.items()}
    if target.shared_workspace:
        largest = max(
            workspace_block_bytes(program, target), *(_size(matrices[i], n, target) for i, n in blocks.items())
        )
        blocks = {i: matrix.fewest_blocks(largest) for i, matrix in matrices.items()}
    steps = list(program.steps)
    for i, matrix in matrices.items():
        step, nbytes = steps[i], _size(matrix, blocks[i], target)
        space = Workspace(purpose="im2col", size_bytes=nbytes, first=Phase.READ, last=Phase.COMPUTE)
        made = None if step.convolution is None else _in_blocks(step.convolution, nbytes, blocks[i])
        steps[i] = replace(step, workspaces=(*step.workspaces, space), convolution=made, launches=blocks[i])
    return replace(program, steps=tuple(steps))


def _in_blocks(convolution: Convolution, nbytes: int, blocks: int) -> Convolution:
    return replace(convolution, workspace_bytes=nbytes, blocks=blocks)


def _rooms(
    program: Program, matrices: Mapping[int, Matrix], target: Target, options: LoweringOptions
) -> dict[int, _Room]:
    others = workspace_block_bytes(program, target)
    pool = target.sram_bytes - sum(r.size_bytes for r in reservations_of(program, target, options, target.sram_bytes))
    live = live_bytes_by_step(program, stored=True).tolist()
    demands = [step_demand_bytes(program, step) for step in program.steps]
    weights = [
        sum(program.buffers[b].size_bytes for b in step.reads if program.buffers[b].kind is BufferKind.WEIGHT)
        for step in program.steps
    ]
    wanted = [nbytes + own for nbytes, own in zip(live, weights, strict=True)]
    half = target.sram_bytes // 2
    if target.shared_workspace:
        room = _Room(at_most=min(half, pool + others - max(demands)), free=pool + others - max(wanted))
        return dict.fromkeys(matrices, room)
    return {i: _Room(at_most=min(half, pool - demands[i]), free=pool - wanted[i]) for i in matrices}


def _blocks(matrix: Matrix, room: _Room, target: Target) -> int:
    """In how many blocks a matrix is made: see the head of this module."""
    round_trip_s = 1 / target.dram_read_bytes_per_s + 1 / target.dram_write_bytes_per_s  # of a byte
    blocks = matrix.fewest_blocks(room.at_most)
    while (nbytes := _size(matrix, blocks, target)) > room.free and blocks < matrix.rows:
        more = -(-matrix.rows // (-(-matrix.rows // blocks) - 1))  # blocks that are one row lower
        saved_s = (nbytes - _size(matrix, more, target)) * round_trip_s
        if saved_s < (more - blocks) * target.launch_overhead_s:
            break
        blocks = more
    return blocks


def _size(matrix: Matrix, blocks: int, target: Target) -> int:
    return align(matrix.nbytes(blocks), target.alignment_bytes)
