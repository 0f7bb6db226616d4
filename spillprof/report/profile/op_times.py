"""What became of measured times, in words."""

from spillprof.ir.profile_facts import OpTimeFacts
from spillprof.report.text import count_of, label

_SHOWN = 3


def op_times_sentence(facts: OpTimeFacts) -> str:
    """``times of prof.json: 53 steps measured, 2 estimated (relu_1, add_7); 1 name of no step (old)``."""
    text = f"times of {label(facts.source, 60)}: {count_of(facts.measured_steps, 'step')} measured"
    if facts.estimated_steps:
        text += f", {facts.estimated_steps:,} estimated ({_names(facts.estimated, facts.estimated_steps)})"
    if facts.unused_names:
        text += f"; {count_of(facts.unused_names, 'name')} of no step ({_names(facts.unused, facts.unused_names)})"
    return text


def _names(names: tuple[str, ...], total: int) -> str:
    shown = [label(name, 30) for name in names[:_SHOWN]]
    return ", ".join([*shown, *(["…"] if total > len(shown) else [])])
