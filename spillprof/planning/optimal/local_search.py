"""Ruin and recreate (Schrimpf et al. 2000): keep a few spent columns of a random row, cover what lacks, prune.

A round is undone if the cover gets dearer. Deterministic: seed and number of rounds depend on the problem alone, and
the budget counts the columns looked at.
"""

from math import sqrt
from random import Random

import numpy as np

from spillprof.planning.budget import Budget
from spillprof.planning.optimal.cover import Cover

_ROUNDS_A_COLUMN = 40
_MOST_ROUNDS = 12_000  # or, in a problem of more than 5,000 columns,
_LEAST_ROUNDS_A_COLUMN = 2.4
_MOST_COLUMNS = 150_000
_MOST_VISITS = 10_000_000
_RUINED = 4  # columns in a round, at most
_LOOKS_A_UNIT = 5  # of work: columns looked at to cover a row;
_LOOKS_A_ROW = 20  # besides, for each row that is covered,
_ROWS_A_LOOK = 500  # to find it,
_LOOKS_TO_PRUNE = 8  # and for each column that may be spare


def improve(cover: Cover, target_cost: int, budget: Budget) -> bool:
    """Improve a complete cover in place until it costs ``target_cost``; False if the budget ended it.

    Very large problems are left unchanged.
    """
    reduced = cover.reduced
    if len(reduced.gaps) > _MOST_COLUMNS or reduced.visits > _MOST_VISITS or not len(reduced.steps):
        return True
    search = _Search(cover)
    n = len(reduced.gaps)
    for number in range(min(max(_MOST_ROUNDS, int(_LEAST_ROUNDS_A_COLUMN * n)), _ROUNDS_A_COLUMN * n)):
        if cover.cost <= target_cost:
            break
        if number % 64 == 0:
            budget.spend(search.looked_at // _LOOKS_A_UNIT)
            search.looked_at = 0
            if budget.is_spent:
                return False
        search.round()
    return True


class _Search:
    def __init__(self, cover: Cover) -> None:
        self._cover = cover
        self._random = Random(len(cover.spent))
        reduced = cover.reduced
        self._root_lengths = [sqrt(sum(end - start for start, end in r)) for r in reduced.ranges]
        self._sizes: list[float] = reduced.sizes.astype(np.float64).tolist()
        self._members: list[list[int]] = [columns.tolist() for columns in reduced.members]
        self._looks_a_row = _LOOKS_A_ROW + len(reduced.steps) // _ROWS_A_LOOK
        self.looked_at = 0  # columns looked at, and work that takes as long

    def round(self) -> None:
        cover, random = self._cover, self._random
        before = cover.cost
        members = self._members[random.randrange(len(cover.reduced.steps))]
        spent = [c for c in members if cover.spent[c]]
        if not spent:
            return
        changed: list[int] = []  # columns flipped, in order
        for c in random.sample(spent, min(len(spent), random.randint(1, _RUINED))):
            cover.keep(c)
            changed.append(c)
        ruined = set(changed)
        if not self._recreate(changed, ruined, before):
            self._undo(changed)
            return
        spare = {c for c in (*changed, *members) if cover.spent[c]}
        self.looked_at += _LOOKS_TO_PRUNE * len(spare)
        changed += cover.prune(spare)
        if cover.cost > before:
            self._undo(changed)

    def _recreate(self, changed: list[int], ruined: set[int], before: int) -> bool:
        """Cover what lacks, worst row first; False if that fails or costs twice as much as before."""
        cover, draw, spent = self._cover, self._random.random, self._cover.spent
        sizes, roots = self._sizes, self._root_lengths
        with_length = draw() < 0.7
        ruined_may_return = draw() < 0.3
        while True:
            row = int(cover.slack.argmin())
            need = -int(cover.slack[row])
            if need <= 0:
                return True
            members = [c for c in self._members[row] if not spent[c]]
            if not ruined_may_return:
                members = [c for c in members if c not in ruined] or members
            self.looked_at += self._looks_a_row + len(members)
            if not members or cover.cost > 2 * before:
                return False
            chosen, highest = -1, -1.0
            for c, price in zip(members, cover.prices(members), strict=True):
                key = sizes[c] if sizes[c] < need else float(need)
                if with_length:
                    key *= roots[c]
                key = key / price * (0.5 + 0.5 * draw())
                if key > highest:
                    chosen, highest = c, key
            cover.spend(chosen)
            changed.append(chosen)

    def _undo(self, changed: list[int]) -> None:
        for c in reversed(changed):
            if self._cover.spent[c]:
                self._cover.keep(c)
            else:
                self._cover.spend(c)
