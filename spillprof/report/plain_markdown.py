"""The Markdown of our own documents as HTML: headings, paragraphs, lists, tables, code. Nothing else is understood."""

import html
import re
from collections.abc import Iterator

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\([^)\s]+\)")
_ITEM = re.compile(r"\s*(?:[-*]|(\d+)\.)\s+(.*)")


def to_html(text: str, *, top_level: int) -> str:
    """HTML of ``text``; its ``#`` becomes ``<h{top_level}>``. Links keep their words only: the page stays offline."""
    return "\n".join(_blocks(text.splitlines(), top_level))


def _blocks(lines: list[str], top_level: int) -> Iterator[str]:
    i = 0
    while i < len(lines):
        line = lines[i]
        end = i + 1
        if not line.strip():
            pass
        elif line.startswith("```"):
            while end < len(lines) and not lines[end].startswith("```"):
                end += 1
            yield f"<pre><code>{html.escape(chr(10).join(lines[i + 1 : end]))}</code></pre>"
            end += 1
        elif heading := re.match(r"(#{1,6})\s+(.*)", line):
            level = min(len(heading[1]) + top_level - 1, 6)
            yield f"<h{level}>{_inline(heading[2])}</h{level}>"
        else:
            starts = line.startswith("|"), _ITEM.match(line) is not None
            while end < len(lines) and lines[end].strip() and not lines[end].startswith(("#", "```")):
                if not any(starts) and (lines[end].startswith("|") or _ITEM.match(lines[end])):
                    break  # a table or a list may follow a paragraph without a blank line
                end += 1
            block = lines[i:end]
            yield _table(block) if starts[0] else _list(block) if starts[1] else f"<p>{_inline(' '.join(block))}</p>"
        i = end


def _table(lines: list[str]) -> str:
    rows = [[_inline(cell.strip()) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
    head = "".join(f'<th scope="col">{cell}</th>' for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[2:])
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _list(lines: list[str]) -> str:
    """One flat list; a line that opens no item continues the one before."""
    items: list[str] = []
    tag = "ul"
    for line in lines:
        if match := _ITEM.match(line):
            tag = "ol" if match[1] and not items else tag
            items.append(match[2])
        else:
            items[-1] += " " + line.strip()
    return f"<{tag}>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + f"</{tag}>"


def _inline(text: str) -> str:
    """Code, bold, emphasis and the words of links; all else is escaped."""
    pieces, last = [], 0
    for match in _INLINE.finditer(text):
        pieces.append(html.escape(text[last : match.start()]))
        code, bold, emphasis, link = match.groups()
        if code is not None:
            pieces.append(f"<code>{html.escape(code)}</code>")
        else:
            tag = "strong" if bold is not None else "em" if emphasis is not None else "span"
            pieces.append(f"<{tag}>{_inline(bold or emphasis or link)}</{tag}>")
        last = match.end()
    return "".join(pieces) + html.escape(text[last:])
