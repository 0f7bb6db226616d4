"""Paths that are no files as one thinks of them, in place of each side file."""

import os
from collections.abc import Iterator
from pathlib import Path

from fuzzing.files import Sound

_HUGE_BYTES = 200 << 20


def special_files(sound: Sound, folder: Path) -> Iterator[tuple[str, list[str], bool]]:
    """(what stands in place of the file, the command, whether a refusal alone is right)."""
    folder.mkdir(exist_ok=True)
    suffix = sound.path.suffix

    def command(name: str) -> list[str]:
        return [name if argument == str(sound.path) else argument for argument in sound.arguments]

    def named(name: str) -> Path:
        path = folder / f"{name}{suffix}"
        path.unlink(missing_ok=True)
        return path

    pipe = named("pipe")
    os.mkfifo(pipe)
    yield "a pipe", command(str(pipe)), True
    device = named("device")
    os.symlink("/dev/zero", device)
    yield "a link to /dev/zero", command(str(device)), True
    circle = named("circle")
    os.symlink(circle.name, circle)
    yield "a link to itself", command(str(circle)), True
    inner = folder / f"folder{suffix}"
    inner.mkdir(exist_ok=True)
    yield "a folder", command(str(inner)), True
    sparse = named("sparse")
    with open(sparse, "wb") as file:
        file.truncate(1 << 40)
    yield "1 TiB of nothing", command(str(sparse)), True
    empty = named("empty")
    empty.touch()
    yield "an empty file", command(str(empty)), suffix not in (".toml",)
    huge = named("huge")
    huge.write_bytes(sound.content * (_HUGE_BYTES // len(sound.content)))
    yield "200 MiB of its own content", command(str(huge)), suffix != ".db"  # SQLite reads its first pages alone
    huge.unlink()
