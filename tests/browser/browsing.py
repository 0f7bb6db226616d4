"""What tests in a browser share: pages that are watched, barriers, the sample models that are shown."""

from pathlib import Path

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SAMPLES = {"transformer_blocks": 1200 << 10, "unet": 1200 << 10, "three_branch": 64 << 20}
"""Sample models, and an SRAM at which they spill."""
VIEW = "[data-view]:not([hidden])"


class Opened:
    """A page, and everything that it must not do."""

    def __init__(self, browser, path: Path, *, width: int = 1280, scheme: str = "light", fragment: str = ""):
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("dialog", lambda d: (self.dialogs.append(d.message), d.dismiss()))
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
        self.page.close()


def barriers(page) -> list[str]:
    """Serious barriers for assistive technology that axe-core finds."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in ("serious", "critical")]
