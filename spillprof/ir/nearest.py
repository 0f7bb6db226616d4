"""Did you mean: known names closest to a mistyped one, by edit distance."""

from collections.abc import Iterable
from itertools import islice

_LONGEST_NAME = 200  # characters: keeps the comparison fast
_MOST_COMPARED = 50_000


def nearest(name: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most ``most`` known names, nearest first; names below the similarity ``cutoff`` are left out."""
    from difflib import get_close_matches

    name = name[:_LONGEST_NAME]
    short = list(islice((each for each in known if each and len(each) <= _LONGEST_NAME), _MOST_COMPARED))
    alike = get_close_matches(name, short, n=most + _MORE, cutoff=cutoff)
    return sorted(alike, key=lambda each: _slips(name, each))[:most]


_MORE = 8
"""Extra candidates from difflib, whose ratio is no edit distance."""


def _slips(typed: str, meant: str) -> int:
    """Damerau-Levenshtein distance (optimal string alignment)."""
    above: list[int] = []
    row = list(range(len(meant) + 1))
    for i, a in enumerate(typed):
        row, before, above = [i + 1], row, above
        for j, b in enumerate(meant):
            least = min(before[j + 1] + 1, row[j] + 1, before[j] + (a != b))
            if above and j and a == meant[j - 1] and typed[i - 1] == b:
                least = min(least, above[j - 1] + 1)
            row.append(least)
        above = before
    return row[-1]
