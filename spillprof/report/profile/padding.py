"""How much of what is live at the peak is padding."""

from spillprof.ir.profile import Profile
from spillprof.ir.units import format_size
from spillprof.report.text import label

WORTH_A_LINE = 0.001
"""Share of the peak: less than this is in the HTML and the JSON alone."""


def padding_share(profile: Profile) -> str:
    """``12 KiB of it is padding``."""
    padding = profile.model.peak_padding_bytes
    return f"{format_size(padding)} of it is padding" if padding else "none of it is padding"


def padding_sentence(profile: Profile) -> str:
    """What the peak holds of padding, and where that comes from; empty if it is less than a thousandth."""
    model, target = profile.model, profile.target
    if model.peak_padding_bytes <= WORTH_A_LINE * model.peak_live_bytes:
        return ""
    where = label(profile.steps[model.peak_step].name, 40)
    channels = f"channels to {target.channel_align:,}, " if target.channel_align > 1 else ""
    return (
        f"At most {format_size(model.peak_live_bytes)} of activations are live, at #{model.peak_step:,} {where}; "
        f"{padding_share(profile)} ({channels}sizes to {target.alignment_bytes:,} B)."
    )
