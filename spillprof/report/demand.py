"""What the steps of a run ask of the SRAM."""

from spillprof.model.profile import Profile


def wanted_bytes(profile: Profile) -> tuple[int, ...]:
    """What each step asks of the SRAM before any eviction: what is live, weight staging, resident weights.

    Workspaces and pinned buffers are part of what is live, so the other reservations are not added again.
    """
    always = profile.target.weight_staging_bytes
    always += profile.model.weight_bytes if profile.config.get("weights") == "resident" else 0
    return tuple(live + always for live in profile.live_bytes)
