"""The content security policy of a page: it runs and styles with what the page carries, by hash, and asks for nothing.

What is not named in it does not run, even if a name from a model got into the page as markup.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

from markupsafe import Markup

_ALONE = "base-uri 'none'; form-action 'none'"
BOLD = "font-weight:bold"
"""What plotly makes of ``<b>`` in a label: an attribute, and the only one that a page needs."""


def policy(scripts: Sequence[str], styles: Sequence[str], attributes: Sequence[str] = ()) -> Markup:
    """The policy of a page with just these scripts, style sheets and style attributes, each exactly as it stands there.

    There is no 'unsafe-inline', so that no other attribute holds style: ``share_classes`` do. What scripts set
    on ``element.style`` is not inline for a browser, nor are the rules that plotly inserts into a sheet of its own. It
    begins empty, which needs the hash of nothing.
    """
    script = f"script-src {_hashes(scripts)}" if scripts else "script-src 'none'"
    style = f"style-src {_hashes(styles)}"
    if attributes:
        style += f"; style-src-attr 'unsafe-hashes' {_hashes(attributes)}"
    images = "img-src data: blob:" if scripts else "img-src data:"  # blob: what a chart is saved from
    return Markup(f"default-src 'none'; {script}; {style}; {images}; {_ALONE}")


def share_classes(percent: float) -> str:
    """Classes that give an element the custom properties ``--whole`` and ``--tenth``: their sum is the percentage."""
    tenths = round(10 * min(max(percent, 0.0), 100.0))
    return f"w{tenths // 10} t{tenths % 10}"


def share_rules() -> Markup:
    """The rules of those classes, one for each whole percentage and each tenth."""
    wholes = [f".w{whole} {{ --whole: {whole}; }}" for whole in range(101)]
    tenths = [f".t{tenth} {{ --tenth: 0.{tenth}; }}" for tenth in range(10)]
    return Markup("\n".join([*wholes, *tenths, ""]))


def _hashes(texts: Sequence[str]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'" for text in texts)
