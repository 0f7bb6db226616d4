"""Planned products over the SRAM: bytes that the plan moves against the floor of any execution, as rows and a figure.

    python benchmarks/products.py [-o benchmarks/results/products.csv] [--figure docs/images/products.svg]

Three models of one MatMul each, on generic-npu with 16 KiB to 64 MiB, planned by ``optimal`` as ``analyze`` does. The
plan is verified, and its bound is that of all tilings of the family. The figures are in docs/laws.md.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from tiling import SIZES, figure

from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.ir.graph import Graph, Operator, Tensor, TensorKind
from spillprof.ir.target import load_target
from spillprof.planning.strategies import OPTIMAL
from spillprof.planning.tiling.floors import io_floor
from spillprof.planning.traffic import count_traffic

PRODUCTS = (
    ("4096 x 4096 x 4096 int8", 4096, 4096, 4096, "int8"),
    ("2048 x 2048 x 2048 float32", 2048, 2048, 2048, "float32"),
    ("512 x 1408 x 768 int8", 512, 768, 1408, "int8"),
)
COLUMNS = (
    "product", "sram_bytes", "moved_bytes", "proven_bytes", "floor_bytes", "ratio", "tile_m", "tile_n", "tile_k",
    "tiles", "latency_s", "ideal_s",
)  # fmt: skip


def product(m: int, n: int, k: int, dtype: str) -> Graph:
    """c[m, n] = a[m, k] b[k, n], all three activations."""
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    kinds = {"a": TensorKind.INPUT, "b": TensorKind.INPUT, "c": TensorKind.ACTIVATION}
    return Graph(
        name="product",
        operators=(Operator(name="c", op_type="MatMul", domain="", inputs=("a", "b"), outputs=("c",)),),
        tensors={x: Tensor(name=x, dtype=dtype, shape=shape, kind=kinds[x]) for x, shape in shapes.items()},
        inputs=("a", "b"),
        outputs=("c",),
        opset=17,
    )


def rows() -> Iterator[dict[str, object]]:
    """One row a product and size."""
    for name, m, n, k, dtype in PRODUCTS:
        engine = Engine()
        for sram_bytes in SIZES:
            run = Run(graph=product(m, n, k, dtype), target=load_target("generic-npu")).at(sram_bytes)
            fitted = engine.fitted(run)
            played = engine.play(fitted, run, OPTIMAL)
            traffic = count_traffic(played.program, played.plan)
            once = traffic.compulsory_read_bytes + traffic.compulsory_write_bytes
            moved, proven = once + traffic.spill_bytes, once + engine.bound(fitted, run, searched=True).cost
            nest = fitted.steps[0].nest
            assert nest is not None
            floor = io_floor(nest.nest, sram_bytes).nbytes
            assert floor <= proven <= moved
            mode = played.program.steps[0].mode
            tile = mode.tiling.tile if mode else (m, n, k)
            values = (
                name, sram_bytes, moved, proven, floor, f"{moved / floor:.3f}", *tile, mode.tiles if mode else 1,
                f"{played.timeline.makespan_s:.6g}", f"{engine.ideal_s(run):.6g}",
            )  # fmt: skip
            yield dict(zip(COLUMNS, values, strict=True))


def main() -> None:
    """Write the rows and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/products.csv"))
    parser.add_argument("--figure", type=Path, default=Path("docs/images/products.svg"))
    args = parser.parse_args()
    found = list(rows())
    with args.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    label = "Bytes moved by plans of three products over SRAM, and their floors"
    args.figure.write_text(figure([name for name, *_ in PRODUCTS], found, label), encoding="utf-8")


if __name__ == "__main__":
    main()
