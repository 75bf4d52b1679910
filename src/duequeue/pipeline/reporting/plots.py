"""The plots of a report."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import nan

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from duequeue.instants import EPOCH
from duequeue.pipeline.reporting.drawing import INK, SERIES, drawn
from duequeue.pipeline.reporting.frames import HOUR, PERCENTILES
from duequeue.pipeline.reporting.words import Row

MOST_DRAWN = len(SERIES) - 1
OTHERS = "others"
DAY = timedelta(days=1)

# The formats of years, months, days, hours, minutes and seconds, and those of the first of each.
_DATES = ["%Y", "%b", "%-d %b", "%H:%M", "%H:%M", "%H:%M:%S"]
_DATES_AT_ZERO = ["", "%Y", "%b", "%-d %b", "%H:%M", "%H:%M"]

_SPANS = {
    1: "1 ms",
    10: "10 ms",
    100: "100 ms",
    1000: "1 s",
    10_000: "10 s",
    60_000: "1 min",
    600_000: "10 min",
    3_600_000: "1 h",
    36_000_000: "10 h",
    86_400_000: "1 day",
    864_000_000: "10 days",
    8_640_000_000: "100 days",
}


def throughput(times: Sequence[Row], step: timedelta) -> str:
    """Draw how many messages were settled, by queue."""
    return drawn("throughput", 2.6, lambda figure: _stacked(figure, times, "settled", step))


def ahead(forecast: Sequence[Row], hours: Sequence[datetime]) -> str:
    """Draw how many messages fall due in the next hours, by queue."""

    def draw(figure: Figure) -> None:
        axes = _stacked(figure, forecast, "messages", HOUR)
        axes.set_xlim(*_days([hours[0], hours[-1] + HOUR]))

    return drawn("ahead", 2.6, draw)


def lateness(times: Sequence[Row], queues: Sequence[str], step: timedelta) -> str:
    """Draw percentiles of lateness over time, with a panel for each of the largest queues."""
    shown = queues[:MOST_DRAWN]
    rows = -(-len(shown) // 2)
    known = [row["at"] for row in times if row["queue"] in shown and row["late_max"] is not None]

    def draw(figure: Figure) -> None:
        columns = min(2, len(shown))
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
        for queue, axes in zip(shown, panels, strict=False):
            _percentiles(axes, [row for row in times if row["queue"] == queue], step)
            axes.set_title(_plain(queue))
        for axes in list(panels)[len(shown) :]:
            axes.set_visible(False)
        # All panels share these limits. Without them, a single point would get an axis of years.
        figure.axes[0].set_xlim(*_days([min(known) - step / 2, max(known) + step]))
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3
        )

    return drawn("lateness", 0.6 + 1.9 * rows, draw)


def trouble(times: Sequence[Row], step: timedelta) -> str:
    """Draw burials and repeated deliveries."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        bars = {"redeliveries": SERIES[1], "buried": SERIES[3]}
        bottoms: dict[datetime, int] = {}
        for name, colour in bars.items():
            _bars(axes, _summed(times, name), bottoms, step, (name, colour))
        _dated(axes)
        _legend(axes)

    return drawn("trouble", 2.2, draw)


def attempts(rows: Sequence[Row]) -> str:
    """Draw messages by their attempts, on a logarithmic scale because most take one."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        counts: dict[int, int] = {}
        for row in rows:
            counts[row["attempts"]] = counts.get(row["attempts"], 0) + row["messages"]
        bars = axes.bar(list(counts), list(counts.values()), color=SERIES[0], width=0.7)
        axes.bar_label(bars, fmt="{:,.0f}", color=INK, padding=2)
        axes.set_yscale("log")
        axes.set_ylim(0.5, 3 * max(counts.values()))
        axes.yaxis.set_major_formatter(FuncFormatter(_count))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlim(0.4, max(5, *counts) + 0.6)
        axes.set_xlabel("attempts")

    return drawn("attempts", 2.4, draw)


def _stacked(figure: Figure, rows: Sequence[Row], what: str, step: timedelta) -> Axes:
    axes = figure.subplots()
    bottoms: dict[datetime, int] = {}
    largest = _largest(rows, what)
    for number, queue in enumerate(largest):
        own = [row for row in rows if row["queue"] == queue]
        _bars(axes, _summed(own, what), bottoms, step, (queue, SERIES[number]))
    rest = [row for row in rows if row["queue"] not in largest]
    if rest:
        _bars(axes, _summed(rest, what), bottoms, step, (OTHERS, SERIES[-1]))
    _dated(axes)
    _legend(axes)
    return axes


def _bars(
    axes: Axes,
    heights: Mapping[datetime, int],
    bottoms: dict[datetime, int],
    step: timedelta,
    called: tuple[str, str],
) -> None:
    name, colour = called
    axes.bar(
        _days(heights),
        list(heights.values()),
        width=0.86 * (step / DAY),
        bottom=[bottoms.get(at, 0) for at in heights],
        align="edge",
        color=colour,
        label=_plain(name),
    )
    for at, height in heights.items():
        bottoms[at] = bottoms.get(at, 0) + height


def _percentiles(axes: Axes, rows: Iterable[Row], step: timedelta) -> None:
    known = {row["at"]: row for row in rows if row["late_max"] is not None}
    # A point without a value interrupts the line where the next step has no data.
    ends = {at + step for at in known} - known.keys()
    instants = sorted([*known, *ends])
    at = _days(instants)
    for label, colour in zip(PERCENTILES, (SERIES[0], SERIES[1], SERIES[3]), strict=True):
        late = [max(0, known[at][f"late_{label}"]) if at in known else nan for at in instants]
        axes.plot(at, late, color=colour, label=label, marker="o", markersize=2.5, linewidth=1.1)
    axes.set_yscale("symlog", linthresh=1)
    axes.yaxis.set_major_locator(FixedLocator([0, *_SPANS]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda span, _: _SPANS.get(int(span), "0")))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
    _dated(axes)


def _dated(axes: Axes) -> None:
    locator = AutoDateLocator(tz=UTC, minticks=3, maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator, tz=UTC, formats=_DATES, zero_formats=_DATES_AT_ZERO, show_offset=False
    )
    axes.xaxis.set_major_formatter(formatter)
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(_count))


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.02), ncols=7, borderaxespad=0, labelcolor=INK
    )


def _largest(rows: Sequence[Row], what: str) -> list[str]:
    sums: dict[str, int] = {}
    for row in rows:
        sums[row["queue"]] = sums.get(row["queue"], 0) + row[what]
    return sorted(sums, key=lambda queue: (-sums[queue], queue))[:MOST_DRAWN]


def _summed(rows: Iterable[Row], what: str) -> dict[datetime, int]:
    sums: dict[datetime, int] = {}
    for row in rows:
        sums[row["at"]] = sums.get(row["at"], 0) + row[what]
    return sums


def _days(instants: Iterable[datetime]) -> list[float]:
    """Return instants in days since the epoch, as the axis counts them."""
    return [(at - EPOCH) / DAY for at in instants]


def _count(value: float, _: int | None) -> str:
    return f"{value:,.0f}" if value >= 1 or value == 0 else ""


def _plain(name: str) -> str:
    """Escape a name, because a dollar starts a formula and an underscore hides it in a legend."""
    return f"\N{ZERO WIDTH SPACE}{name}".replace("$", r"\$")
