"""Puts the last report into the documentation: its tables between two marks, its plots beside."""

import shutil
from pathlib import Path

from bench.plots import draw
from bench.report import report
from bench.results import Results

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"
BEGIN, END = "<!-- report: begin -->", "<!-- report: end -->"


def publish(folder: Path) -> None:
    """Rewrite the page from the results of the last run."""
    kept = folder / "results.json"
    if not kept.exists():
        raise SystemExit(f"there is no {kept}: run `make bench` first")
    results = Results.read(kept)
    images = DOCS / "img"
    images.mkdir(exist_ok=True)
    names = draw(results, folder)
    for name in names:
        shutil.copy(folder / f"{name}.svg", images / f"bench-{name}.svg")
    pictures = [f"![{name}](img/bench-{name}.svg)\n" for name in names]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = "\n".join([BEGIN, "", *pictures, report(results), END])
    PAGE.write_text(before + text + after)
    print(f"Published to {PAGE}")
