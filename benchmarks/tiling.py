"""Products over SRAM: bytes of the best tiling against the floor that no execution passes, as rows and as a figure.

    python benchmarks/tiling.py [-o benchmarks/results/tiling.csv] [--figure docs/images/tiling.svg]

Three products, each alone in 16 KiB to 64 MiB. Every tiling is counted again by walking its tiles where they are few
enough. The figures are in docs/tiling.md.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from math import log2, log10
from pathlib import Path

from spillprof.ir.loop_nest import LoopAxis, LoopNest, NestOperand, Window
from spillprof.planning.tiling.cost import TileBuffers
from spillprof.planning.tiling.floors import io_floor
from spillprof.planning.tiling.modes import modes
from spillprof.verify.nest import recount_nest

PRODUCTS = (
    ("4096 x 4096 x 4096 int8", 4096, 4096, 4096, 8),
    ("512 x 3072 x 768 int8", 512, 3072, 768, 8),
    ("3000 x 5000 x 2000 float16", 3000, 5000, 2000, 16),
)
COLUMNS = (
    "product", "sram_bytes", "accumulator_bits", "moved_bytes", "floor_bytes", "once_bytes", "ratio", "footprint_bytes",
    "tile_m", "tile_n", "tile_k", "tiles",
)  # fmt: skip
SIZES = [2**exponent * 1024 for exponent in range(4, 17)]
MOST_TILES = 200_000
COLORS = ("#3465a4", "#c0392b", "#2e8b57")


def matmul(m: int, n: int, k: int, bits: int) -> LoopNest:
    """C[m, n] = A[m, k] B[k, n]."""
    sizes = (m, n, k)

    def operand(name: str, *axes: int, is_output: bool = False) -> NestOperand:
        windows = tuple(Window(size=sizes[axis], axis=axis) for axis in axes)
        return NestOperand(name=name, windows=windows, element_bits=bits, is_output=is_output)

    return LoopNest(
        axes=tuple(LoopAxis(name=name, size=size) for name, size in zip("mnk", sizes, strict=True)),
        operands=(operand("A", 0, 2), operand("B", 2, 1), operand("C", 0, 1, is_output=True)),
        macs=m * n * k,
    )


def rows() -> list[dict[str, object]]:
    """One row a product, size and width of accumulators."""
    found = []
    for name, m, n, k, bits in PRODUCTS:
        nest = matmul(m, n, k, bits)
        for sram_bytes in SIZES:
            for accumulator_bits in (0, 32):
                best = modes(nest, sram_bytes, TileBuffers(accumulator_bits=accumulator_bits))[0]
                floor = io_floor(nest, sram_bytes, accumulator_bits=accumulator_bits)
                if best.cost.tiles <= MOST_TILES:
                    count = recount_nest(nest, best.tiling, accumulator_bits=accumulator_bits)
                    assert count.moved_bytes == best.cost.moved_bytes
                    assert count.footprint_bytes == best.cost.footprint_bytes <= sram_bytes
                assert best.cost.moved_bytes >= floor.nbytes
                ratio = f"{best.cost.moved_bytes / floor.nbytes:.3f}"
                values = (
                    name, sram_bytes, accumulator_bits, best.cost.moved_bytes, floor.nbytes, floor.once_bytes, ratio,
                    best.cost.footprint_bytes, *best.tiling.tile, best.cost.tiles,
                )  # fmt: skip
                found.append(dict(zip(COLUMNS, values, strict=True)))
    return found


def figure(names: Sequence[str], found: Sequence[Mapping[str, object]], label: str) -> str:
    """An SVG: SRAM to the right, megabytes upwards, both in logarithmic scale; floors are dashed.

    ``found``: rows with ``product``, ``sram_bytes``, ``moved_bytes`` and ``floor_bytes``, by size.
    """
    width, height, left, top, right, bottom = 760, 420, 64, 20, 20, 48
    low, high = 3e6, 3e9

    def x(sram_bytes: int) -> float:
        return left + (width - left - right) * (log2(sram_bytes) - 14) / 12

    def y(nbytes: int | float) -> float:
        return height - bottom - (height - top - bottom) * (log10(nbytes) - log10(low)) / (log10(high) - log10(low))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="12" role="img"'
        f' aria-label="{label}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for nbytes in (3e6, 10e6, 30e6, 100e6, 300e6, 1e9, 3e9):
        parts.append(f'<path d="M{left} {y(nbytes):.1f}H{width - right}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y(nbytes) + 4:.1f}" text-anchor="end">{nbytes / 1e6:,.0f} MB</text>')
    for size in SIZES[::2]:
        word = f"{size // 1024} KiB" if size < 2**20 else f"{size // 2**20} MiB"
        parts.append(f'<path d="M{x(size):.1f} {top}V{height - bottom}" stroke="#eee"/>')
        parts.append(f'<text x="{x(size):.1f}" y="{height - bottom + 18}" text-anchor="middle">{word}</text>')
    parts.append(f'<text x="{(width + left) / 2:.0f}" y="{height - 8}" text-anchor="middle">SRAM</text>')
    for name, color, line in zip(names, COLORS, range(3), strict=True):
        own = [row for row in found if row["product"] == name]
        for column, dash in (("moved_bytes", ""), ("floor_bytes", ' stroke-dasharray="5 4"')):
            points = " ".join(f"{x(int(str(r['sram_bytes']))):.1f},{y(int(str(r[column]))):.1f}" for r in own)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
        at = top + 18 + 18 * line
        parts.append(f'<path d="M{width - 300} {at - 4}h24" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{width - 270}" y="{at}">{name}</text>')
    at = top + 18 + 18 * 3
    parts.append(f'<path d="M{width - 300} {at - 4}h24" stroke="#555" stroke-width="2" stroke-dasharray="5 4"/>')
    parts.append(f'<text x="{width - 270}" y="{at}">floor: no execution moves less</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write the rows and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/tiling.csv"))
    parser.add_argument("--figure", type=Path, default=Path("docs/images/tiling.svg"))
    args = parser.parse_args()
    found = rows()
    with args.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    plain = [row for row in found if row["accumulator_bits"] == 0]
    label = "Bytes moved by three products over SRAM, and their floors"
    args.figure.write_text(figure([name for name, *_ in PRODUCTS], plain, label), encoding="utf-8")


if __name__ == "__main__":
    main()
