"""The curves, as PNG and SVG."""

import shutil
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from bench.plots import save
from bench.timers.lifetimes import PATTERNS
from bench.timers.one import STORE
from bench.timers.results import Results
from bench.timers.subjects import SUBJECTS

FIGURES = {"insert": "Insert", "cancel": "Cancel", "expire": "Expire", "memory": "Memory"}
OPERATIONS = {
    "offer": "Offer",
    "claim": "Poll one",
    "extend": "Extend",
    "ack": "Ack",
    "memory": "Memory",
}
STYLES = {
    "HeapTimer": ("#0b6e4f", "-"),
    "SimpleWheel": ("#3a7ca5", "-"),
    "SortedHashedWheel": ("#7b4ea3", "-"),
    "HashedWheel": ("#c8553d", "-"),
    "HierarchicalWheel": ("#e0b04c", "-"),
    "heapq and dict": ("#333333", "--"),
    "asyncio": ("#8d99ae", "--"),
    "uvloop": ("#8d99ae", ":"),
    "sched": ("#8d99ae", "-."),
}
TIMERS = {
    "heap": "HeapTimer",
    "simple": "SimpleWheel",
    "sorted": "SortedHashedWheel",
    "hashed": "HashedWheel",
    "hierarchical": "HierarchicalWheel",
}


def draw(results: Results, folder: Path, images: Path) -> None:
    """Draw both pictures, and copy them into the documentation."""
    for name, figure in (("timers", _lifetimes(results)), ("timers-store", _store(results))):
        save(figure, folder / name)
        shutil.copy(folder / f"{name}.svg", images / f"bench-{name}.svg")


def _lifetimes(results: Results) -> Figure:
    figure = Figure(figsize=(10, 11), layout="constrained")
    panels = figure.subplots(len(FIGURES), len(PATTERNS), squeeze=False, sharey="row", sharex=True)
    for row, (name, title) in enumerate(FIGURES.items()):
        for column, pattern in enumerate(PATTERNS):
            axes = panels[row][column]
            for subject in SUBJECTS:
                _curve(axes, *results.curve(pattern, name, subject), subject)
            axes.set_title(f"{title}, {pattern}")
            axes.set_yscale("log")
            _label_plainly(axes)
        panels[row][0].set_ylabel("bytes for each item" if name == "memory" else "ns for each item")
    for axes in panels[-1]:
        axes.set_xlabel("items")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return figure


def _store(results: Results) -> Figure:
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    *panels, legend = figure.subplots(2, 3).flat
    for axes, (name, title) in zip(panels, OPERATIONS.items(), strict=True):
        for timer, subject in TIMERS.items():
            sizes, values = results.curve(STORE, name, timer)
            if name == "memory":
                least = 10_000  # below, the pages of the process are coarser than the messages
                pairs = [pair for pair in zip(sizes, values, strict=True) if pair[0] >= least]
                sizes, values = [size for size, _ in pairs], [value for _, value in pairs]
            else:
                values = [value / 1000 for value in values]
            _curve(axes, sizes, values, subject)
        axes.set_title(title)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("messages pending")
        axes.set_ylabel("bytes for each message" if name == "memory" else "µs")
    handles, labels = panels[0].get_legend_handles_labels()
    legend.set_axis_off()
    legend.legend(handles, labels, loc="center", frameon=False)
    return figure


def _label_plainly(axes: Axes) -> None:
    """Label 100, 200 and 500, or only the powers of ten where there are many."""
    low, high = axes.get_ylim()
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _curve(axes: Axes, sizes: list[int], values: list[float], subject: str) -> None:
    colour, style = STYLES[subject]
    axes.plot(sizes, values, "o", linestyle=style, color=colour, label=subject, markersize=3)
    axes.set_xscale("log")
