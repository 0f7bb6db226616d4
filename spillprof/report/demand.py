"""What the steps of a run ask of the SRAM."""

from spillprof.model.profile import Profile


def wanted_bytes(profile: Profile) -> tuple[int, ...]:
    """What each step asks of the SRAM before any eviction: what is live, weight staging, weights that stay,
    and what the runtime keeps.

    Workspaces and pinned buffers are part of what is live, so the other reservations are not added again.
    """
    target = profile.target
    always = target.runtime_bytes + target.weight_staging_bytes + _staying_weight_bytes(profile)
    return tuple([live + always for live in profile.live_bytes])


def wanted_in_words(profile: Profile) -> str:
    """What ``wanted_bytes`` counts: ``what is live, with weight staging``."""
    runtime = "what the runtime keeps and " if profile.target.runtime_bytes else ""
    return f"what is live, with {runtime}{'the weights' if _staying_weight_bytes(profile) else 'weight staging'}"


def _staying_weight_bytes(profile: Profile) -> int:
    """Weights that are wanted on-chip all the time: resident ones, and cached ones, which the next run needs again."""
    match profile.config.get("weights"):
        case "resident":
            return profile.model.weight_bytes
        case "cached":
            return sum(b.size_bytes for b in profile.buffers if b.kind == "weight")
        case _:
            return 0
