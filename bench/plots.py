"""The pictures of the report, as PNG and SVG."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.contenders import BY_NAME, Role
from bench.report import number, ranked
from bench.results import Results
from bench.workload import RATE
from bench.workloads import WORKLOADS_BY_NAME

COLOURS = {Role.OURS: "#0b6e4f", Role.PEER: "#8d99ae", Role.LIMIT: "#e0b04c"}
MEANINGS = {Role.OURS: "DueQueue", Role.PEER: "peers", Role.LIMIT: "limits, and the seed"}
THROUGHPUT = ("offer-one", "offer-16", "offer-batch", "poll-ack-one", "poll-ack-100", "consume")
SPARK = (
    "spark-write-new",
    "spark-write-equal",
    "spark-write-changed",
    "spark-read",
    "spark-stream",
)
SERVICE = ("service-offer-100", "service-take-100", "service-offer-64")
WAITING = ("latency", "lateness", "burst")
PROCESSES = ("processes-1", "processes-2", "processes-4")
ROW_HEIGHT = 0.24

# A function that draws one contender in a row of a panel.
Paint: TypeAlias = Callable[[Axes, Results, str, str, int], None]

mpl.use("agg")
mpl.rcParams.update(
    {
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "font.size": 9,
        "svg.hashsalt": "bench",  # the same figures make the same file
    }
)


def draw(results: Results, folder: Path) -> list[str]:
    """Draw every picture that has figures, and return their names."""
    pictures: dict[str, Callable[[], Figure | None]] = {
        "throughput": lambda: _panels(results, THROUGHPUT, _rates),
        "spark": lambda: _panels(results, SPARK, _rates),
        "service": lambda: _panels(results, SERVICE, _rates),
        "service-wake": lambda: _panels(results, ("service-wake",), _delays),
        "waiting": lambda: _panels(results, WAITING, _delays),
        "churn": lambda: _curves(results, "churn", "seconds", "MB, tables and indexes"),
        "spark-memory": lambda: _curves(results, "spark-memory", "micro-batches", "MB"),
        "processes": lambda: _scaling(results),
    }
    drawn = {name: picture() for name, picture in pictures.items()}
    return [name for name, figure in drawn.items() if figure and save(figure, folder / name)]


def save(figure: Figure, path: Path) -> bool:
    """Save a picture in both formats."""
    figure.savefig(path.with_suffix(".png"), dpi=150, bbox_inches="tight")
    figure.savefig(path.with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})
    return True


def _panels(results: Results, names: Sequence[str], paint: Paint) -> Figure | None:
    """Draw one panel for each workload, as high as its number of contenders needs."""
    shown = {name: _shown(results, name) for name in names if results.outcomes.get(name)}
    if not any(shown.values()):
        return None
    heights = [len(contenders) + 3 for contenders in shown.values()]
    figure = Figure(figsize=(9, ROW_HEIGHT * sum(heights) + 0.8), layout="constrained")
    panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, contenders) in zip(panels, shown.items(), strict=True):
        for row, contender in enumerate(contenders):
            paint(axes, results, name, contender, row)
        axes.set_yticks(range(len(contenders)), _labels(contenders))
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_title(WORKLOADS_BY_NAME[name].title)
    present = {BY_NAME[contender].role for contenders in shown.values() for contender in contenders}
    handles = [Patch(color=COLOURS[role], label=MEANINGS[role]) for role in Role if role in present]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _shown(results: Results, name: str) -> list[str]:
    """Return the best first, without the memory store, which would make all others dots."""
    names = ranked(results, WORKLOADS_BY_NAME[name])
    return [contender for contender in names if BY_NAME[contender].store != "memory"]


def _rates(axes: Axes, results: Results, name: str, contender: str, row: int) -> None:
    """Draw a bar, and a line from the lowest to the highest round."""
    low, middle, high = results.spread(name, contender, RATE)
    axes.barh(row, middle, color=COLOURS[BY_NAME[contender].role], height=0.72)
    axes.hlines(row, low, high, color="#333333", linewidth=1)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("messages per second, more is better")
    _write(axes, number(middle), high, row)


def _delays(axes: Axes, results: Results, name: str, contender: str, row: int) -> None:
    """Draw a dot for the median and a ring for the 99th percentile."""
    usual = results.spread(name, contender, "p50 ms").middle
    rare = results.spread(name, contender, "p99 ms").middle
    colour = COLOURS[BY_NAME[contender].role]
    axes.hlines(row, usual, rare, color=colour, linewidth=1)
    axes.plot(usual, row, "o", color=colour)
    axes.plot(rare, row, "o", color=colour, markerfacecolor="white")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("milliseconds, less is better; dot: median, ring: 99th percentile")
    _write(axes, f"{number(usual)} / {number(rare)}", rare, row)


def _write(axes: Axes, text: str, right_of: float, row: int) -> None:
    axes.annotate(
        text, (right_of, row), (6, 0), textcoords="offset points", va="center", fontsize=8
    )


def _labels(names: Sequence[str]) -> list[str]:
    return [BY_NAME[name].title.replace("*", "").replace("limit: ", "") for name in names]


def _curves(results: Results, name: str, along: str, what: str) -> Figure | None:
    if not results.outcomes.get(name):
        return None
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    for contender, outcomes in results.outcomes[name].items():
        sizes = zip(*outcomes[-1].curves.values(), strict=True)
        axes.plot([sum(parts) for parts in sizes], label=_labels([contender])[0], linewidth=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(along)
    axes.set_ylabel(what)
    axes.set_title(WORKLOADS_BY_NAME[name].title)
    axes.legend(frameon=False)
    return figure


def _scaling(results: Results) -> Figure | None:
    shown = [name for name in PROCESSES if results.outcomes.get(name)]
    if len(shown) < len(PROCESSES):
        return None
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    for contender in results.outcomes[shown[0]]:
        rates = [results.spread(name, contender, RATE).middle for name in shown]
        axes.plot(_labels_of(shown), rates, "o-", label=_labels([contender])[0], linewidth=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("processes")
    axes.set_ylabel("messages per second")
    axes.set_title("Poll 100 and ack, several processes")
    axes.legend(frameon=False)
    return figure


def _labels_of(names: Sequence[str]) -> list[str]:
    return [name.rpartition("-")[2] for name in names]
