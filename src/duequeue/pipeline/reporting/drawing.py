"""Figures as SVG, with the colours and the font of the page, whether light, dark or printed."""

import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

WIDTH = 9.6

# Placeholders that become variables of the page's style sheet.
INK, GRID = "#100010", "#100011"
SERIES = [f"#10000{number}" for number in range(7)]
_VARIABLES = {INK: "var(--ink)", GRID: "var(--grid)"} | {
    colour: f"var(--series-{number})" for number, colour in enumerate(SERIES)
}

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
}


def drawn(name: str, height: float, draw: Callable[[Figure], object]) -> str:
    """Draw a figure, and return it as SVG that can stand inside a page."""
    # The ids in one drawing must differ from those of the others on the page.
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure)
        written = StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(written.getvalue())


def _for_page(svg: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<g id=\"[^\"]*\">", "<g>", svg)
    svg = re.sub(r"<svg ([^>]*?)(?:height|width)=\"[^\"]*\" ", r"<svg \1", svg, count=1)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*sans-serif", "inherit", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg
