"""Victims of standing rules: the heap of candidates agrees with ranking all of them."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.planning.candidates import CandidateQueue, CandidateTable
from spillprof.planning.strategies import ONLINE_RULES, STANDING_RULES, EvictionRule
from spillprof.planning.traffic import TransferCosts

N = 6


def both(rule: EvictionRule, rng: Random) -> tuple[CandidateQueue, CandidateTable]:
    sizes = np.array([float(rng.randint(1, 3)) for _ in range(N)])
    nothing = TransferCosts(read_s=np.zeros(N), write_s=np.zeros(N))
    return CandidateQueue(rule, sizes), CandidateTable(rule, sizes, nothing)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([name for name, rule in ONLINE_RULES.items() if rule in STANDING_RULES]))
def test_a_queue_chooses_what_a_table_chooses(seed: int, name: str) -> None:
    rng = Random(seed)
    queue, table = both(ONLINE_RULES[name], rng)
    for now in range(40):
        b = rng.randrange(N)
        for candidates in (queue, table):
            candidates.remove(b)
        if rng.random() < 0.7:
            use, dirty = now + rng.randint(1, 4), rng.random() < 0.5
            for candidates in (queue, table):
                candidates.add(b, last_use=now // 3, next_use=use, dirty=dirty)
        assert queue.choose(now=now, need_bytes=1) == table.choose(now=now, need_bytes=1)


@pytest.mark.parametrize("rule", sorted(STANDING_RULES, key=lambda rule: rule.__name__))
def test_a_buffer_that_is_added_again_is_ranked_again(rule: EvictionRule) -> None:
    queue, table = both(rule, Random(0))
    for candidates in (queue, table):
        candidates.add(0, last_use=0, next_use=9, dirty=False)
        candidates.add(1, last_use=1, next_use=8, dirty=False)
        assert candidates.choose(now=2, need_bytes=1) == 0
        candidates.remove(0)
        candidates.add(0, last_use=5, next_use=6, dirty=False)
        assert candidates.choose(now=6, need_bytes=1) == 1
        candidates.remove(1)
        candidates.remove(0)
        assert candidates.choose(now=7, need_bytes=1) is None
