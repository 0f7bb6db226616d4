"""Untrusted text in Markdown: as code in a cell of a table, or as words in which nothing is markup."""

from spillprof.report.text import label, printable


def code(name: str, limit: int = 60) -> str:
    """``name`` as inline code that is safe within a table cell, whatever it contains."""
    shown = label(name, limit)
    if not any(c in shown for c in "`|\\"):
        return f"`{shown}`"
    return f"<code>{''.join(c if c.isalnum() else f'&#{ord(c)};' for c in shown)}</code>"


def plain(sentence: str, *kept: str) -> str:
    """Text in which nothing is markup, and no character hides; but each of ``kept`` stays as it is."""
    for mark in kept:
        if mark in sentence:
            return mark.join(plain(part) for part in sentence.split(mark))
    return "".join(f"&#{ord(c)};" if c in "\\`*_[]<>&|#~@" else c for c in printable(sentence))
