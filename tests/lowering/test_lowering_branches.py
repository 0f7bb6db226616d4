"""Nested branches: the chosen one against all combinations, and live bytes against an independent count."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, product
from random import Random

from graphs import graph, lowered, op, picture

from spillprof.ir.graph import Graph, Operator
from spillprof.lowering.options import Fuse, Views
from spillprof.planning.liveness import live_bytes_by_step

KIB = 1024
PLAIN = {"fuse": Fuse.NONE, "inplace": False, "views": Views.COPY, "fold": False}
COND = ("bool", ())


def peak(g: Graph) -> int:
    return max(live_bytes_by_step(lowered(g, **PLAIN), stored=False).tolist())


def maps(channels: int) -> tuple[int, ...]:
    return (channels, 64, 64)  # 16 KiB of float32 each


def nested(depth: int) -> Graph:
    """Ifs inside each other, all but the innermost with a narrow other branch; the innermost holds 320 KiB or works."""
    outside = {"a": maps(1), "b": maps(20)}
    works = graph({}, ["Conv a -> p", "Conv p -> r"], "r", tensors={**outside, "p": maps(12), "r": maps(5)})
    holds = graph({}, ["Slice b -> r"], "r", tensors={**outside, "r": maps(5)})
    innermost = op("If c0 -> r", captures="a b", subgraphs=[works, holds])
    for level in range(1, depth):
        inside = graph({}, [innermost], "r", tensors={**outside, f"c{level - 1}": COND, "r": maps(5)})
        other = graph({}, ["Expand a -> r"], "r", tensors={**outside, "r": maps(5)})
        captures = " ".join(["a", "b", *(f"c{k}" for k in range(level))])
        innermost = op(f"If c{level} -> r", captures=captures, subgraphs=[inside, other])
    conditions = {f"c{k}": COND for k in range(depth)}
    return graph(
        {"x": maps(1), **conditions}, ["Conv x -> a", "Conv x -> b", innermost, "Conv r -> y"], "y",
        tensors={**outside, "r": maps(5), "y": maps(1)},
    )  # fmt: skip


def test_what_a_branch_holds_of_graphs_further_outside_counts_for_it() -> None:
    for depth in (1, 2, 3, 5):
        g = nested(depth)
        assert peak(g) // KIB == 400, depth  # b, and the 80 KiB that Slice takes out of it
        assert any(line.startswith("Slice") for line in picture(lowered(g, **PLAIN)))


def test_a_loop_that_runs_once_passes_on_what_dies_in_it() -> None:
    """Run twice, it needs a and b for its next trip, whichever branch runs; then the one that works needs more."""
    for trips, expected in ((1, "Slice"), (2, "Conv")):
        inner = nested(1).operators[2]
        inputs = {"i": ("int64", ()), "go": COND, "s": maps(5)}
        outside = {"a": maps(1), "b": maps(20), "c0": COND}
        body = graph(inputs, [inner, "Identity go -> g2"], "g2 r", tensors={**outside, "r": maps(5), "g2": COND})
        loop = op("Loop n t s -> z", captures="a b c0", subgraphs=[body], trips=trips)
        g = graph(
            {"x": maps(1), "s": maps(5), "c0": COND}, ["Conv x -> a", "Conv x -> b", loop], "z",
            weights={"n": ("int64", ()), "t": COND}, tensors={"a": maps(1), "b": maps(20), "z": maps(5)},
        )  # fmt: skip
        steps = [line.split()[0] for line in picture(lowered(g, **PLAIN))]
        assert steps[steps.index("If") + 1] == expected, trips


# --- random graphs


def random_graph(seed: int) -> Graph:
    """Softmaxes and Ifs of Ifs over tensors of random sizes."""
    rng, number = Random(seed), count()

    def body(depth: int, outside: dict[str, tuple[int, ...]], last_size: tuple[int, ...]) -> Graph:
        seen, own, ops = dict(outside), {}, []
        length = rng.randint(1, 3)
        for position in range(length):
            result = f"t{next(number)}"
            size = last_size if position == length - 1 else (rng.choice([1, 2, 5, 9, 30]),)
            if depth < 3 and rng.random() < 0.45:
                branches = [body(depth + 1, seen, size) for _ in range(2)]
                captures = [n for n in seen if any(n in b.captures for b in branches)]
                ops.append(op(f"If c -> {result}", captures=" ".join(captures), subgraphs=branches))
            else:
                operands = rng.sample(sorted(seen.keys() - {"c"}), rng.randint(1, 2))
                ops.append(op(f"Softmax {' '.join(operands)} -> {result}"))
            seen[result] = own[result] = size
        g = graph({}, ops, result, tensors={**outside, **own})
        read = {n for o in ops for n in (*o.inputs, *o.captures)}
        return replace(g, captures=tuple(n for n in outside if n in read))

    inputs = {"x": (4,), "z": (7,), "c": COND}
    main = body(0, inputs, (3,))
    made = {n: t.shape for n, t in main.tensors.items() if n not in inputs}
    return graph(inputs, main.operators, main.outputs[0], tensors=made)


def decided(g: Graph) -> Iterator[Graph]:
    """The graph with one branch of each If, in all combinations; what the others might read stays captured."""
    for operators in product(*(list(_decided(o)) for o in g.operators)):
        yield replace(g, operators=operators)


def _decided(o: Operator) -> Iterator[Operator]:
    if not o.subgraphs:
        yield o
    for index, branch in enumerate(o.subgraphs):
        for chosen in decided(branch):
            yield replace(o, subgraphs=(chosen,), subgraph_names=(o.subgraph_names[index],))


Event = tuple[tuple[str, ...], tuple[str, ...], dict[str, int]]  # reads, holds, bytes written


def events(g: Graph, names: dict[str, str], fresh: Iterator[int]) -> Iterator[Event]:
    """What runs of a graph with one branch an If, by names of the whole run."""
    for o in g.operators:
        results = {n: names.get(n) or f"{n}.{next(fresh)}" for n in o.outputs}
        if o.subgraphs:
            yield (names[o.inputs[0]],), tuple(names[n] for n in o.captures), {}
            branch = o.subgraphs[0]
            inner = {n: names[n] for n in branch.captures} | {branch.outputs[0]: results[o.outputs[0]]}
            yield from events(branch, inner, fresh)
        else:
            yield tuple(names[n] for n in o.inputs), (), {results[n]: g.tensors[n].nbytes for n in o.outputs}
        names |= results


def recounted_peak(g: Graph) -> int:
    names = {n: n for n in (*g.inputs, *g.outputs)}
    sizes = {n: g.tensors[n].nbytes for n in g.inputs}
    born = dict.fromkeys(g.inputs, -1)
    last: dict[str, int] = {}
    run: Sequence[Event] = list(events(g, names, count()))
    for i, (reads, holds, written) in enumerate(run):
        last |= dict.fromkeys((*reads, *holds, *written), i)
        sizes |= written
        born |= dict.fromkeys(written, i)
    last[g.outputs[0]] = len(run)
    return max(sum(sizes[n] for n in last if born[n] <= i <= last[n]) for i in range(len(run)))


def test_of_all_combinations_of_branches_the_one_with_the_highest_peak_is_taken() -> None:
    differing = 0
    for seed in range(200):
        g = random_graph(seed)
        combinations = list(decided(g))
        if len(combinations) > 64:
            continue
        peaks = [peak(each) for each in combinations]
        assert peaks == [recounted_peak(each) for each in combinations], seed
        assert peak(g) == max(peaks), seed
        differing += min(peaks) < max(peaks)
    assert differing > 20
