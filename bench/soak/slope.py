"""Whether a line of samples is flat: its slope, and how well the samples determine the slope."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean

# Neighbouring samples resemble each other, so their noise is judged by the means of whole blocks.
BLOCKS = 10


@dataclass(frozen=True)
class Slope:
    """The change per minute, with twice its standard error."""

    per_minute: float
    uncertainty: float
    change: float
    mean: float
    negligible: float

    @property
    def is_flat(self) -> bool:
        """Whether the line may well be level, or rises too little to matter."""
        return abs(self.change) <= self.negligible or abs(self.per_minute) <= self.uncertainty


def slope_of(minutes: Sequence[float], values: Sequence[float], negligible: float) -> Slope:
    """Fit a line to the means of the blocks."""
    size = max(len(values) // BLOCKS, 1)
    starts = range(0, len(values) - size + 1, size)
    x = [mean(minutes[at : at + size]) for at in starts]
    y = [mean(values[at : at + size]) for at in starts]
    middle_x, middle_y = mean(x), mean(y)
    spread = sum((each - middle_x) ** 2 for each in x)
    rise = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True)) / spread
    errors = [b - middle_y - rise * (a - middle_x) for a, b in zip(x, y, strict=True)]
    error = sqrt(sum(each**2 for each in errors) / (len(x) - 2) / spread)
    change = rise * (minutes[-1] - minutes[0])
    return Slope(rise, 2 * error, change, mean(values), negligible)
