"""What the steps of a run ask of the SRAM."""

from spillprof.ir.profile import Profile


def wanted_bytes(profile: Profile) -> tuple[int, ...]:
    """What each step asks of the SRAM before any eviction: what is live, and what is reserved all the time.

    That is weight staging, weights that stay, and what the runtime keeps. Workspaces, or the block that they share, and
    pinned buffers are part of what is live already.
    """
    reserved = profile.reserved
    always = reserved.runtime_bytes + reserved.weight_staging_bytes + _staying_weight_bytes(profile)
    return tuple([live + always for live in profile.live_bytes])


def wanted_in_words(profile: Profile) -> str:
    """What ``wanted_bytes`` counts: ``what is live, with weight staging``."""
    kept = ["what the runtime keeps"] if profile.reserved.runtime_bytes else []
    kept += ["the shared workspace block"] if profile.reserved.shared_workspace_bytes else []
    kept.append("the weights" if _staying_weight_bytes(profile) else "weight staging")
    listed = " and ".join([", ".join(kept[:-1]), kept[-1]]) if len(kept) > 1 else kept[0]
    return f"what is live, with {listed}"


def _staying_weight_bytes(profile: Profile) -> int:
    """Weights that are wanted on-chip all the time: resident ones, and cached ones, which the next run needs again."""
    match profile.config.get("weights"):
        case "resident":
            return profile.model.weight_bytes
        case "cached":
            return sum(b.size_bytes for b in profile.buffers if b.kind == "weight")
        case _:
            return 0
