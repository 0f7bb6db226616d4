"""A project watched by a gate: small ONNX models in a git repository."""

import os
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from spillprof.cli import run

SIZE = 32 * 1024
"""Bytes of each activation: 8 channels of 32 x 32 float32."""

CONFIG = """
[tool.spillprof]
strategy = "interval"

[tool.spillprof.targets.npu-96k]
sram = "96KiB"
dram-read = "4GB/s"
dram-write = "3GB/s"

[[tool.spillprof.models]]
path = "models/a.onnx"
targets = ["npu-96k"]

[[tool.spillprof.models]]
path = "models/b.onnx"
targets = ["npu-96k"]
"""


def chain(path: Path, *, convs: int = 4, skip: bool = False, producer: str = "test", prefix: str = "") -> None:
    """A chain of convolutions of which two fit into 96 KiB at a time; ``skip`` adds the first result to the last."""
    value = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 8, 32, 32]) for name in ("x", "y")]
    weight = numpy_helper.from_array(np.zeros((8, 8, 1, 1), np.float32), "w")
    names = ["x", *(f"{prefix}c{i}" for i in range(convs - 1)), "last" if skip else "y"]
    nodes = [
        helper.make_node("Conv", [source, "w"], [result], name=f"{prefix}/body.{i}/Conv")
        for i, (source, result) in enumerate(pairwise(names))
    ]
    if skip:
        nodes.append(helper.make_node("Add", ["last", f"{prefix}c0"], ["y"], name=f"{prefix}/skip/Add"))
    graph = helper.make_graph(nodes, "chain", value[:1], value[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name=producer)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(model.SerializeToString())


class Project:
    """A git repository with two models, a configuration and a committed baseline; the working folder of the test."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        self.folder = folder
        self.baseline = folder / "spillprof-baseline.json"
        self.git("init", "-q", "-b", "main")
        chain(folder / "models" / "a.onnx")
        chain(folder / "models" / "b.onnx")
        (folder / "pyproject.toml").write_text(config, "utf-8")
        assert run(["gate", "--update", "-q"]) == 0
        self.commit("start")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
            cwd=self.folder, capture_output=True, text=True, check=True,
            env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def add_models(self, names: Sequence[str]) -> None:
        """Watch more models, as the first is."""
        for name in names:
            chain(self.folder / "models" / f"{name}.onnx")
            with open(self.folder / "pyproject.toml", "a", encoding="utf-8") as file:
                file.write(f'\n[[tool.spillprof.models]]\npath = "models/{name}.onnx"\ntargets = ["npu-96k"]\n')
