"""Takes the pictures of the documentation from real reports. ``python docs/make_screenshots.py``

The runs are those of docs/tutorial.md, and of the README. Needs Playwright, a Chromium on the machine, and Pillow:
pictures get a palette, so that none weighs much.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 250_000
PALETTE = (128, 64, 32)  # colours, fewer where a picture is too heavy

SETTINGS = """\
sram = "3.5MB"
weights = "cached"
fuse = "standard"
act-dtype = "int8"
weight-dtype = "int8"
"""
RUNS = (
    "analyze mobilenet_v2.onnx -o first.html -o first.json",
    "sweep mobilenet_v2.onnx --sram 2MB..6MB/512KB --strategy lru,cost,interval -o sizes.html",
    "diff first.json mobilenet_v2.onnx --sram 5MB -o diff.html",
    "analyze residual_cnn.onnx --config none.toml --sram 32MB --strategy lru,cost,interval -o residual.html",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """A picture: what a window shows of a page."""

    name: str
    page: str
    first: str = ""  # CSS of what is at the top; empty: the top of the page
    width: int = 1080
    height: int = 760
    scheme: str = "light"
    above: int = 8  # pixels over ``first``: what stays at the top of the window lies over them


TIMELINE = "section:has(> h2[id^='timeline']):visible"
SHOTS = (
    Shot(name="report-top", page="first.html", height=1410),
    Shot(name="report-top-dark", page="first.html", scheme="dark", height=1410),
    Shot(name="report-timeline", page="first.html", first=TIMELINE, above=70, height=1240),
    Shot(name="report-phone", page="first.html", width=390, height=844),
    Shot(name="sweep", page="sizes.html", first="figure >> nth=0", height=620),
    Shot(name="diff", page="diff.html"),
    Shot(name="../report", page="residual.html", first=TIMELINE, above=70, height=1240),
)


_SCROLL = "([element, above]) => window.scrollTo(0, element.getBoundingClientRect().top + scrollY - above)"


def main() -> None:
    """Run the commands, open what they write, and take the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        work = Path(folder)
        shutil.copy(ROOT / "sample_models" / "exported" / "mobilenet_v2.onnx", work)
        shutil.copy(ROOT / "sample_models" / "residual_cnn.onnx", work)
        (work / "spillprof.toml").write_text(SETTINGS, encoding="utf-8")
        (work / "none.toml").touch()
        for run in RUNS:
            command = [sys.executable, "-m", "spillprof", *run.split()]
            subprocess.run(command, cwd=work, check=True, stdout=subprocess.DEVNULL)
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for shot in SHOTS:
            data = light(take(browser, work, shot))
            target = IMAGES / f"{shot.name}.png"
            target.resolve().write_bytes(data)
            print(f"{target.resolve().relative_to(ROOT)}: {len(data):,} bytes")
        browser.close()


def take(browser: Browser, work: Path, shot: Shot) -> bytes:
    """A PNG of the part of the page."""
    page = browser.new_page(viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme)
    page.goto(f"{(work / shot.page).as_uri()}")
    page.wait_for_load_state("networkidle")
    if shot.first:
        part = page.locator(shot.first).first
        part.scroll_into_view_if_needed()
        page.evaluate(_SCROLL, [part.element_handle(), shot.above])
        page.wait_for_timeout(1500)  # charts are drawn when they come into view
    else:
        page.wait_for_timeout(500)
    data = page.screenshot()
    page.close()
    return data


def light(png: bytes) -> bytes:
    """The picture with a palette that makes it light enough."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colors in PALETTE:
        out = io.BytesIO()
        picture.quantize(colors, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        if len(out.getvalue()) <= MOST_BYTES:
            return out.getvalue()
    raise AssertionError(f"a picture weighs more than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main()
