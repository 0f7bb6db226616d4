"""Complete a cover greedily: the column that covers most of what is lacking for its cost comes next."""

from heapq import heapify, heappop, heappush

from spillprof.planning.optimal.cover import Cover

_FREE = float("inf")


def complete(cover: Cover) -> bool:
    """Spend columns until no row lacks anything; whether that is possible.

    Keys only fall as rows fill, so that the heap may be lazy; but when a buffer is written, its other columns get
    cheaper and are pushed again.
    """
    others: dict[int, list[int]] = {}
    for c, b in enumerate(cover.buffers):
        if b in cover.write_costs:
            others.setdefault(b, []).append(c)
    heap = [(-_key(cover, c), c) for c in range(len(cover.spent)) if not cover.spent[c]]
    heapify(heap)
    missing = int((cover.slack < 0).sum())
    while missing:
        if not heap:
            return False
        said, c = heappop(heap)
        if cover.spent[c]:
            continue
        key = -_key(cover, c)
        if key >= 0:
            continue
        if heap and key > heap[0][0] and key > said:
            heappush(heap, (key, c))
            continue
        first = not cover.spent_of[cover.buffers[c]]
        cover.spend(c)
        missing = int((cover.slack < 0).sum())
        if first:
            for other in others.get(cover.buffers[c], ()):
                if not cover.spent[other]:
                    heappush(heap, (-_key(cover, other), other))
    return True


def _key(cover: Cover, c: int) -> float:
    gain, price = cover.gain(c), cover.price(c)
    return 0.0 if not gain else gain / price if price else _FREE
