"""A machine whose copy times follow a formula, for calibration tests."""

from dataclasses import dataclass, field

from spillprof.frontends.calibration.measure import Direction


@dataclass
class KnownCopier:
    """Set-up and bandwidth by direction; each repetition is slower than the one before by ``slowdown``."""

    setup_s: float = 1e-6
    read_bytes_per_s: float = 1e10
    write_bytes_per_s: float = 5e9
    both_bytes_per_s: float = 12e9  # in sum
    slowdown: float = 0.0
    device: str = "a machine that is known"
    method: tuple[str, ...] = ("by a formula",)
    copies: list[tuple[Direction, int]] = field(default_factory=list)
    closed: bool = False

    def seconds(self, direction: Direction, size_bytes: int) -> float:
        before = self.copies.count((direction, size_bytes))
        self.copies.append((direction, size_bytes))
        rates = {
            Direction.READ: self.read_bytes_per_s,
            Direction.WRITE: self.write_bytes_per_s,
            Direction.BOTH: self.both_bytes_per_s / 2,
        }
        return (self.setup_s + size_bytes / rates[direction]) * (1 + self.slowdown * before)

    def close(self) -> None:
        self.closed = True
