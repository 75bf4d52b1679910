"""The report's pictures, as PNG and SVG."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.contenders import BY_NAME, Role
from bench.report import number, ranked
from bench.results import Results
from bench.workloads import WORKLOADS_BY_NAME

COLOURS = {Role.OURS: "#0b6e4f", Role.PEER: "#8d99ae", Role.LIMIT: "#e0b04c"}
MEANINGS = {Role.OURS: "DueQueue", Role.PEER: "peers", Role.LIMIT: "limits, and the seed"}
THROUGHPUT = ("offer-one", "offer-16", "offer-batch", "poll-ack-one", "poll-ack-100", "consume")
WAITING = ("latency", "lateness", "burst")
PROCESSES = ("processes-1", "processes-2", "processes-4")
ROW_HEIGHT = 0.24

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
    """Draw what there are figures for; return the names of the pictures."""
    pictures = {
        "throughput": lambda: _bars(results, THROUGHPUT, "messages per second, more is better"),
        "waiting": lambda: _bars(
            results, WAITING, "milliseconds to the 50th and 99th percentile, less is better"
        ),
        "churn": lambda: _curves(results, "churn"),
        "processes": lambda: _scaling(results),
    }
    return [name for name, picture in pictures.items() if _save(picture, folder / name)]


def _save(picture: Callable[[], Figure | None], path: Path) -> bool:
    figure = picture()
    if figure is None:
        return False
    figure.savefig(path.with_suffix(".png"), dpi=150, bbox_inches="tight")
    figure.savefig(path.with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})
    return True


def _bars(results: Results, names: Sequence[str], label: str) -> Figure | None:
    """One panel for each workload, as high as it has contenders."""
    shown = [name for name in names if results.outcomes.get(name)]
    if not shown:
        return None
    heights = [len(results.outcomes[name]) + 2 for name in shown]
    figure = Figure(figsize=(9, ROW_HEIGHT * sum(heights) + 0.8), layout="constrained")
    panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, name in zip(panels, shown, strict=True):
        _panel(axes, results, name)
    panels[-1].set_xlabel(label + "; logarithmic")
    handles = [Patch(color=COLOURS[role], label=MEANINGS[role]) for role in Role]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _panel(axes: Axes, results: Results, name: str) -> None:
    workload = WORKLOADS_BY_NAME[name]
    figures = results.figures(name)
    for row, contender in enumerate(ranked(results, workload)):
        entry = BY_NAME[contender]
        low, middle, high = results.spread(name, contender, figures[0])
        # Of percentiles, the second is the far end of the line; of rates, the spread is.
        far = results.spread(name, contender, figures[1]).middle if len(figures) > 1 else high
        near = middle if len(figures) > 1 else low
        axes.barh(row, middle, color=COLOURS[entry.role], height=0.72)
        axes.hlines(row, near, far, color="#333333", linewidth=1)
        axes.annotate(
            number(middle),
            (far, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(results.outcomes[name])), _labels(ranked(results, workload)))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.set_title(workload.title)


def _labels(names: Sequence[str]) -> list[str]:
    return [BY_NAME[name].title.replace("*", "").replace("limit: ", "") for name in names]


def _curves(results: Results, name: str) -> Figure | None:
    if not results.outcomes.get(name):
        return None
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    for contender, outcomes in results.outcomes[name].items():
        sizes = zip(*outcomes[-1].curves.values(), strict=True)
        axes.plot([sum(parts) for parts in sizes], label=_labels([contender])[0], linewidth=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("MB, tables and indexes")
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
        rates = [results.spread(name, contender, "messages/s").middle for name in shown]
        axes.plot(_labels_of(shown), rates, "o-", label=_labels([contender])[0], linewidth=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("processes")
    axes.set_ylabel("messages per second")
    axes.set_title("Poll 100 and ack, several processes")
    axes.legend(frameon=False)
    return figure


def _labels_of(names: Sequence[str]) -> list[str]:
    return [name.rpartition("-")[2] for name in names]
