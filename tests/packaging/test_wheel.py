import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import spillprof

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    paths = list(WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("dist"))))
    return zipfile.ZipFile(paths[0])


def test_every_source_file_ships(wheel: zipfile.ZipFile) -> None:
    shipped = set(wheel.namelist())
    sources = [p for p in (ROOT / "spillprof").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {p.relative_to(ROOT).as_posix() for p in sources} <= shipped
    assert "spillprof/py.typed" in shipped


def test_every_template_ships_inside_the_package(wheel: zipfile.ZipFile) -> None:
    shipped = set(wheel.namelist())
    templates = [p for p in (ROOT / "templates").rglob("*") if p.is_file() and not p.name.startswith(".")]
    assert templates
    assert {f"spillprof/templates/{p.relative_to(ROOT / 'templates').as_posix()}" for p in templates} <= shipped


def test_the_glossary_that_reports_print_ships(wheel: zipfile.ZipFile) -> None:
    assert wheel.read("spillprof/templates/model.md") == (ROOT / "docs" / "model.md").read_bytes()


def test_nothing_but_the_package_ships(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0] for name in wheel.namelist()} == {
        "spillprof", f"spillprof-{spillprof.__version__}.dist-info"
    }  # fmt: skip


def test_metadata_names_the_licence_and_the_command(wheel: zipfile.ZipFile) -> None:
    folder = f"spillprof-{spillprof.__version__}.dist-info"
    metadata = HeaderParser().parsestr(wheel.read(f"{folder}/METADATA").decode())
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Version"] == spillprof.__version__
    assert "Apache License" in wheel.read(f"{folder}/licenses/LICENSE").decode()
    assert "spillprof = spillprof.cli:main" in wheel.read(f"{folder}/entry_points.txt").decode()
