"""The cost of a million messages, day by day, as PNG and SVG."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.plots import save
from bench.retention.costs import MILLION, Costs
from bench.retention.full_scale import STAGES
from bench.retention.tables import KINDS, PLACES


def draw(costs: Costs, folder: Path) -> None:
    """Draw three panels: time, size, memory."""
    figure = Figure(figsize=(9, 7.5), layout="constrained")
    times, sizes, memory = figure.subplots(3, 1, sharex=True)
    _lines(times, costs, tuple(STAGES), costs.seconds_per_million)
    times.set_title("Time for each million messages")
    times.set_ylabel("seconds")
    _lines(sizes, costs, PLACES, costs.megabytes_per_million)
    sizes.set_title("Size of each million messages")
    sizes.set_ylabel("MB")
    _lines(memory, costs, KINDS, lambda kind, at: costs.days[at].memory.get(kind, 0))
    memory.set_title("Peak of memory")
    memory.set_ylabel("MB")
    memory.set_xlabel("million messages so far, a day each")
    save(figure, folder / "retention")


def _lines(
    axes: Axes, costs: Costs, names: Sequence[str], value: Callable[[str, int], float]
) -> None:
    days = range(len(costs.days))
    so_far = [costs.messages_until(at) / MILLION for at in days]
    for name in names:
        axes.plot(so_far, [value(name, at) for at in days], "o-", label=name, linewidth=2)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
