"""One picture of all samples, and one page with the picture and the verdicts."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from bench.plots import save
from bench.soak.lines import LINES, verdict_on
from bench.soak.sampling import Sample
from bench.soak.slope import Slope

COLOUR = "#0b6e4f"

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Soak</title>
<style>body {{ font: 15px sans-serif; max-width: 60em; margin: 2em auto }}
td, th {{ padding: 0.2em 1em 0.2em 0; text-align: left }}
svg {{ width: 100%; height: auto }}</style>
</head><body><h1>Soak</h1><p>{text}</p>
<table><tr><th>store</th><th>line</th><th>mean</th><th>change per minute</th><th></th></tr>
{rows}</table>
{picture}</body></html>
"""


def draw(samples: Mapping[str, Sequence[Sample]], path: Path) -> None:
    """Draw a row of panels for each line, and a column for each store."""
    figure = Figure(figsize=(5 * len(samples), 1.5 * len(LINES)), layout="constrained")
    panels = figure.subplots(len(LINES), len(samples), squeeze=False, sharex="col")
    for column, (store, taken) in enumerate(samples.items()):
        minutes = [each["minute"] for each in taken]
        for row, (name, line) in enumerate(LINES.items()):
            axes = panels[row][column]
            axes.plot(minutes, [each[name] for each in taken], color=COLOUR, linewidth=1)
            axes.set_ylim(0, 1.1 * max(1, *(each[name] for each in taken)))
            axes.set_title(f"{store}: {line.title}", fontsize=8)
        panels[-1][column].set_xlabel("minutes")
    save(figure, path)


def write_page(slopes: Mapping[tuple[str, str], Slope], text: str, path: Path) -> None:
    """Write the page, with the picture inside it."""
    rows = "".join(
        f"<tr><td>{escape(store)}</td><td>{escape(LINES[line].title)}</td><td>{slope.mean:,.1f}</td>"
        f"<td>{slope.per_minute:+.3f} ± {slope.uncertainty:.3f}</td>"
        f"<td>{verdict_on(line, slope)}</td></tr>"
        for (store, line), slope in slopes.items()
    )
    svg = path.with_suffix(".svg").read_text("utf-8")
    picture = svg[svg.index("<svg") :]
    page = PAGE.format(text=escape(text), rows=rows, picture=picture)
    path.with_suffix(".html").write_text(page, "utf-8")
