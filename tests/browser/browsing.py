"""Helpers of the browser tests: watched pages, accessibility checks, sample models."""

from pathlib import Path
from typing import Any

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SAMPLES = {"transformer_blocks": 1200 << 10, "unet": 8 << 20, "three_branch": 600 << 20}
"""Sample models, and an SRAM from which their buffers are evicted; of the last two, operators are tiled too."""
VIEW = "[data-view]:not([hidden])"

_tabs: list[Any] = []
"""Empty tabs that nobody uses. A new one costs more than all that most tests do: it has compiled no script yet."""


class Opened:
    """A file in a tab, and everything that it must not do."""

    def __init__(self, browser, path: Path, *, width: int = 1280, scheme: str = "light", fragment: str = ""):
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.page = _tabs.pop() if _tabs else browser.new_page()
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme, media="screen")
        self._watched = {
            "console": lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None,
            "pageerror": lambda e: self.errors.append(str(e)),
            "request": lambda r: self.requests.append(r.url),
            "dialog": lambda d: (self.dialogs.append(d.message), d.dismiss()),
        }
        for event, listener in self._watched.items():
            self.page.on(event, listener)
        self.page.goto(path.as_uri() + fragment)
        self.page.wait_for_selector("html[data-ready=true]", state="attached")

    def draw_everything(self) -> None:
        for node in self.page.query_selector_all("[data-figure]"):
            if node.is_visible():
                node.scroll_into_view_if_needed()
                node.wait_for_selector(".main-svg", state="attached")

    def check_and_close(self) -> None:
        assert self.errors == []
        assert self.dialogs == []
        assert [url for url in self.requests if not url.startswith(("file://", "data:", "blob:"))] == []
        assert len([url for url in self.requests if url.startswith("file://")]) == 1
        for event, listener in self._watched.items():
            self.page.remove_listener(event, listener)
        self.page.evaluate("localStorage.clear()")
        self.page.goto("about:blank")
        _tabs.append(self.page)


def barriers(page) -> list[str]:
    """Serious barriers for assistive technology that axe-core finds."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in ("serious", "critical")]
