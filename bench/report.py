"""The report: a table for each workload, in Markdown, and everything as JSON."""

from pathlib import Path

from bench.contenders import BY_NAME
from bench.results import Results
from bench.workload import Workload
from bench.workloads import WORKLOADS_BY_NAME

WHOLE_FROM = 100


def write_report(results: Results, folder: Path) -> str:
    """Write the report into a folder, and return its text."""
    folder.mkdir(parents=True, exist_ok=True)
    results.write(folder / "results.json")
    text = report(results)
    (folder / "report.md").write_text(text)
    return text


def report(results: Results) -> str:
    """Return the facts about the machine, and a table for each workload."""
    about = [f"- {name}: {value}" for name, value in results.about.items()]
    tables = [_table(results, WORKLOADS_BY_NAME[name]) for name in results.sizes]
    return "\n".join([*about, *tables])


def _table(results: Results, workload: Workload) -> str:
    figures = results.figures(workload.name)
    heads = ["", *(f"{figure} | spread" for figure in figures), "ours is better by", "what differs"]
    lines = [
        f"\n### {workload.title}\n",
        f"{workload.about} Size: {results.sizes[workload.name]:,}; {_rounds(results, workload)}.\n",
        f"| {' | '.join(heads)} |",
        "|---|" + "---:|---:|" * len(figures) + "---:|---|",
    ]
    lines += [_row(results, workload, name, figures) for name in ranked(results, workload)]
    for name, reason in results.failures.get(workload.name, {}).items():
        lines.append(
            f"| {BY_NAME[name].title} |" + " none | |" * len(figures) + f" | {_cell(reason)} |"
        )
    return "\n".join(lines) + "\n"


def ranked(results: Results, workload: Workload) -> list[str]:
    """Return the names of the contenders with figures, the best one first."""
    figures = results.figures(workload.name)
    return sorted(
        results.outcomes.get(workload.name, {}),
        key=lambda name: results.spread(workload.name, name, figures[0]).middle,
        reverse=workload.better == "more",
    )


def _row(results: Results, workload: Workload, name: str, figures: list[str]) -> str:
    entry = BY_NAME[name]
    cells = [entry.title]
    for figure in figures:
        low, middle, high = results.spread(workload.name, name, figure)
        cells += [number(middle), f"{number(low)} to {number(high)}" if low < high else ""]
    cells += [_ratio(results, workload, name, figures[0]), _cell(entry.load().notes)]
    return f"| {' | '.join(cells)} |"


def _rounds(results: Results, workload: Workload) -> str:
    rounds = max(map(len, results.outcomes.get(workload.name, {}).values()), default=0)
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def _ratio(results: Results, workload: Workload, name: str, figure: str) -> str:
    """Return how many times better ours is; below one, it is worse."""
    entry = BY_NAME[name]
    if entry.against == name or entry.against not in results.outcomes[workload.name]:
        return ""
    ours = results.spread(workload.name, entry.against, figure).middle
    theirs = results.spread(workload.name, name, figure).middle
    better = ours / theirs if workload.better == "more" else theirs / ours
    return f"{better:.2f}"


def number(value: float) -> str:
    """Write a figure with its meaningful digits."""
    return f"{value:,.0f}" if value >= WHOLE_FROM else f"{value:.2f}"


def _cell(text: str) -> str:
    """Return a text that does not break its table row."""
    return text.replace("|", "/")
