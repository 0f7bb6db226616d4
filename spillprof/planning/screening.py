"""Candidate screening: which gaps are worth a spill at all.

| asked | passes if | because |
| --- | --- | --- |
| span | at least MIN_SPAN steps lie between the uses | the space must be free for a while, and the reload needs time |
| size | set-up is at most half of the transfer | small buffers pay a fixed cost for little space |
| next use | at most CLOSE_USES other uses follow within the span of the gap | it would come back again and again |
| references | it is no operand of the step, and not pinned | it cannot leave, so it is never offered |

Each question that a gap fails costs it a point. Gaps with fewer points lost are taken first.
"""

from bisect import bisect_right
from collections.abc import Sequence

from spillprof.ir.target import Target
from spillprof.planning.gaps import GapOption

MIN_SPAN = 2
CLOSE_USES = 4


def points_lost(gap: GapOption, read_steps: Sequence[int], target: Target) -> int:
    """Questions of the screening table that the gap fails, 0 to 3. ``read_steps`` are the buffer's, ascending."""
    lost = 0
    if gap.length < MIN_SPAN:
        lost += 1
    if gap.moved_bytes / target.dram_read_bytes_per_s < target.dram_read_setup_s:
        lost += 1
    if gap.next_use is not None:
        later = bisect_right(read_steps, gap.next_use)
        if bisect_right(read_steps, gap.next_use + gap.length) - later > CLOSE_USES:
            lost += 1
    return lost
