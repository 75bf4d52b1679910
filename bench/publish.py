"""Put the last report into the documentation: its tables between two marks, and its plots."""

import shutil
from pathlib import Path

from bench.plots import draw
from bench.report import report
from bench.results import Results

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"
REPORTS = Path(__file__).parent / "report"


def report_folder(suite: str) -> Path:
    """Return the folder of the last report of a suite."""
    return REPORTS / suite


def publish(suite: str) -> None:
    """Rewrite the page from the results of the last run of a suite."""
    folder = report_folder(suite)
    kept = folder / "results.json"
    if not kept.exists():
        raise SystemExit(f"there is no {kept}: measure first")
    results = Results.read(kept)
    images = DOCS / "img"
    images.mkdir(exist_ok=True)
    names = draw(results, folder)
    for name in names:
        shutil.copy(folder / f"{name}.svg", images / f"bench-{name}.svg")
    pictures = [f"![{name}](img/bench-{name}.svg)\n" for name in names]
    put_between(suite, "\n".join([*pictures, report(results)]))


def put_between(name: str, text: str) -> None:
    """Replace the text of a page between the marks of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    page = PAGE.read_text()
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"{PAGE} must have {begin} and {end}, once each")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text("\n".join([before + begin, "", text, end + after]))
    print(f"Published to {PAGE}")
