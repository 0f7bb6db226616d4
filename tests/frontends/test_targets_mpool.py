"""Targets from the memory pools of ST Edge AI."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from spillprof.frontends.targets import open_target
from spillprof.ir.errors import UsageError


def pool(name: str, size: tuple[str, str], width: float, ratio: float, rights: str, throughput: str) -> dict[str, Any]:
    return {
        "fname": name.upper(),
        "name": name,
        "prop": {"rights": rights, "throughput": throughput, "latency": "LOW", "byteWidth": width, "freqRatio": ratio},
        "offset": {"value": "0x34200000", "magnitude": "BYTES"},
        "size": {"value": size[0], "magnitude": size[1]},
    }


POOLS = {
    "memory": {
        "mempools": [
            pool("ram3", ("448", "KBYTES"), 8, 1.25, "ACC_WRITE", "HIGH"),
            pool("ram4", ("0x70000", "BYTES"), 8, 1.25, "ACC_WRITE", "HIGH"),
            pool("ram5", ("448", "KBYTES"), 8, 1.25, "ACC_WRITE", "HIGH"),
            pool("unused", ("0", "MBYTES"), 1, 9.0, "ACC_WRITE", "MID"),
            pool("cpuram", ("1024", "KBYTES"), 8, 2.5, "ACC_WRITE", "MID"),
            pool("hyper", ("16", "MBYTES"), 2, 5.0, "ACC_WRITE", "MID"),
            pool("flash", ("32", "MBYTES"), 1, 6.0, "ACC_READ", "MID"),
        ]
    }
}


def written(tmp_path: Path, document: object) -> str:
    path = tmp_path / "board.mpool"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def test_fast_pools_are_the_memory_and_the_slowest_writable_one_takes_spills(tmp_path: Path) -> None:
    target = open_target(written(tmp_path, POOLS))
    assert target.name == "board"
    assert target.sram_bytes == 3 * 448 * 1024
    assert target.sram_bytes_per_s == 2 * 8 * 0.8e9, "two of the three at once"
    assert target.dram_read_bytes_per_s == target.dram_write_bytes_per_s == 2 * 0.2e9
    assert set(target.sources) >= {"sram_bytes", "dram_read_bytes_per_s", "clock_hz", "macs_per_s"}


def test_another_pool_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, POOLS)
    assert open_target(f"{path}:cpuram").dram_read_bytes_per_s == 8 * 0.4e9
    flash = open_target(f"{path}:flash")
    assert flash.sources["dram_write_bytes_per_s"].startswith("assumed: as reading; flash is read-only")
    with pytest.raises(UsageError, match="no pool 'ram3' that spills could go to"):
        open_target(f"{path}:ram3")


def changed(key: str, value: object, index: int = 0) -> dict[str, Any]:
    document = copy.deepcopy(POOLS)
    pools: Any = document["memory"]["mempools"]
    (pools[index]["prop"] if key in pools[index]["prop"] else pools[index])[key] = value
    return document


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "is nested more than 64 deep"),
        ([], "there is no list 'memory.mempools'"),
        ({"memory": {"mempools": 3}}, "there is no list 'memory.mempools'"),
        ({"memory": {"mempools": []}}, "no pool is writable and of high throughput"),
        ({"memory": {"mempools": POOLS["memory"]["mempools"][:3]}}, "nothing to spill to"),
        (changed("byteWidth", 0), "byteWidth = 0 is not a positive number"),
        (changed("byteWidth", "8"), "byteWidth = '8' is not a positive number"),
        (changed("freqRatio", None), "freqRatio = None is not a positive number"),
        (changed("size", {"value": "448"}), "is not understood"),
        (changed("size", {"value": "-1", "magnitude": "BYTES"}), "is not understood"),
        (changed("size", {"value": "9" * 30, "magnitude": "GBYTES"}), "is not understood"),
        (changed("size", 448), "is not understood"),
        (changed("prop", 3), "has no name or no 'prop'"),
    ],
)
def test_a_malformed_file_is_an_error(tmp_path: Path, document: object, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_target(written(tmp_path, document))
    assert complaint in caught.value.message


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the file of memory pools"):
        open_target(str(tmp_path / "none.mpool"))
