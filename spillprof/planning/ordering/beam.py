"""Beam search over orders: the best few partial orders are kept at every length."""

from dataclasses import dataclass

from spillprof.planning.ordering.dependencies import Dependencies


@dataclass(frozen=True, slots=True)
class _Partial:
    """Steps done so far. Sets are bit masks over steps."""

    excess: int  # bytes over the capacity, summed over the steps done
    peak: int
    live: int  # bytes in use now
    done: int
    ready: tuple[int, ...]
    last: "tuple[int, object] | None"  # linked list of the steps, latest first


MOST_LOOKS = 200_000
"""Extensions of partial orders that a search looks at before it gives up."""


def beam_order(graph: Dependencies, capacity_bytes: int, width: int) -> tuple[int, ...] | None:
    """An order found by keeping ``width`` partial orders: least bytes over the capacity, then least peak.

    None where so many steps are ready at once that it would take too long.
    """
    n = len(graph.waits_for)
    needs = [sum(1 << j for j in before) for before in graph.waits_for]
    reader_masks = [sum(1 << j for j in readers) for readers in graph.readers]
    beam = [_Partial(0, 0, 0, 0, tuple(i for i in range(n) if not needs[i]), None)]
    looks = 0
    for _ in range(n):
        looks += sum(len(state.ready) for state in beam)
        if looks > MOST_LOOKS:
            return None
        best: dict[int, _Partial] = {}
        for state in beam:
            for i in state.ready:
                grown = sum(graph.size_bytes[b] for b in graph.written[i])
                grown += sum(graph.size_bytes[b] for b in graph.loaded[i] if not reader_masks[b] & state.done)
                used = state.live + grown
                done = state.done | 1 << i
                excess = state.excess + max(0, used - capacity_bytes)
                peak = max(state.peak, used)
                other = best.get(done)
                if other is not None and (other.excess, other.peak) <= (excess, peak):
                    continue
                freed = sum(graph.size_bytes[b] for b in graph.read[i] if not reader_masks[b] & ~done)
                best[done] = _Partial(excess, peak, used - freed, done, (i, *state.ready), (i, state.last))
        chosen = sorted(best.values(), key=lambda s: (s.excess, s.peak, s.live))[:width]
        beam = [_advanced(state, graph, needs) for state in chosen]
    order: list[int] = []
    link = beam[0].last
    while link is not None:
        step, link = link  # type: ignore[assignment]
        order.append(step)
    return tuple(reversed(order))


def _advanced(state: _Partial, graph: Dependencies, needs: list[int]) -> _Partial:
    """The state with its ready steps found: the step just done goes, those that waited for it alone come."""
    ran, *others = state.ready
    ready = [j for j in others if j != ran]
    ready += [j for j in graph.awaited_by[ran] if not needs[j] & ~state.done]
    return _Partial(state.excess, state.peak, state.live, state.done, tuple(ready), state.last)
