"""What the steps of a run need of the SRAM, and how much of the peak is padding."""

from spillprof.ir.profile import Profile
from spillprof.ir.units import format_size
from spillprof.report.text import label

_WORTH_A_LINE = 0.001
"""Smallest share of the peak that text reports mention."""


def wanted_bytes(profile: Profile) -> tuple[int, ...]:
    """Returns the demand of each step before evictions: live bytes plus permanent reservations.

    That is weight staging, weights that stay, and what the runtime keeps. Workspaces, or the block that they share, and
    pinned buffers are part of what is live already.
    """
    reserved = profile.reserved
    always = reserved.runtime_bytes + reserved.weight_staging_bytes + _staying_weight_bytes(profile)
    return tuple([live + always for live in profile.live_bytes])


def wanted_in_words(profile: Profile) -> str:
    """Describes what ``wanted_bytes`` counts: ``what is live, with weight staging``."""
    kept = ["what the runtime keeps"] if profile.reserved.runtime_bytes else []
    kept += ["the shared workspace block"] if profile.reserved.shared_workspace_bytes else []
    kept.append("the weights" if _staying_weight_bytes(profile) else "weight staging")
    listed = " and ".join([", ".join(kept[:-1]), kept[-1]]) if len(kept) > 1 else kept[0]
    return f"what is live, with {listed}"


def _staying_weight_bytes(profile: Profile) -> int:
    """Returns weight bytes needed on-chip throughout: resident ones, and cached ones, which the next run needs."""
    match profile.config.get("weights"):
        case "resident":
            return profile.model.weight_bytes
        case "cached":
            return sum(b.size_bytes for b in profile.buffers if b.kind == "weight")
        case _:
            return 0


def padding_share(profile: Profile) -> str:
    """``12 KiB of it is padding``."""
    padding = profile.model.peak_padding_bytes
    return f"{format_size(padding)} of it is padding" if padding else "none of it is padding"


def padding_sentence(profile: Profile) -> str:
    """States the padding at the peak and its origin; empty below a thousandth."""
    model, target = profile.model, profile.target
    if model.peak_padding_bytes <= _WORTH_A_LINE * model.peak_live_bytes:
        return ""
    where = label(profile.steps[model.peak_step].name, 40)
    channels = f"channels to {target.channel_align:,}, " if target.channel_align > 1 else ""
    return (
        f"At most {format_size(model.peak_live_bytes)} of activations are live, at #{model.peak_step:,} {where}; "
        f"{padding_share(profile)} ({channels}sizes to {target.alignment_bytes:,} B)."
    )
