"""The medians as tables for the documentation."""

from collections.abc import Sequence

from bench.timers.lifetimes import PATTERNS
from bench.timers.one import STORE
from bench.timers.plot import FIGURES, OPERATIONS, TIMERS
from bench.timers.results import Results
from bench.timers.subjects import SUBJECTS


def tables(results: Results, sizes: Sequence[int]) -> str:
    """Return all tables, and say how many rounds they summarize."""
    parts = [f"Medians of {results.rounds()} rounds."]
    for pattern in PATTERNS:
        parts += [f"**{pattern}**", _lifetimes(results, pattern, sizes[0], sizes[-1])]
    parts += ["**a whole life, beside heapq and dict**", _ratios(results, sizes)]
    parts += ["**memory store**", _store(results, sizes)]
    return "\n\n".join(parts)


def _lifetimes(results: Results, pattern: str, small: int, large: int) -> str:
    columns = [(name, size) for name in FIGURES for size in (small, large)]
    columns.remove(("memory", small))
    head = ["", *(f"{name}, {size:,}" for name, size in columns)]
    rows = [
        [
            subject,
            *(_number(results.median(pattern, name, subject, size)) for name, size in columns),
        ]
        for subject in SUBJECTS
    ]
    return _table(head, rows)


def _ratios(results: Results, sizes: Sequence[int]) -> str:
    head = ["", *(f"{pattern}, {size:,}" for pattern in PATTERNS for size in sizes)]
    rows = []
    for subject in SUBJECTS:
        row = [subject]
        for pattern in PATTERNS:
            for size in sizes:
                mine = _life(results, pattern, subject, size)
                bare = _life(results, pattern, "heapq and dict", size)
                row.append(f"{mine / bare:.2f}" if mine and bare else "")
        rows.append(row)
    return _table(head, rows)


def _life(results: Results, pattern: str, subject: str, size: int) -> float | None:
    """Return the cost of an item that is added, and then cancelled or expired, half of each."""
    shares = {"insert": 1.0, "cancel": 0.5, "expire": 0.5}
    costs = [
        (results.median(pattern, name, subject, size), share) for name, share in shares.items()
    ]
    return sum((cost or 0) * share for cost, share in costs) if all(c for c, _ in costs) else None


def _store(results: Results, sizes: Sequence[int]) -> str:
    head = ["", *(f"{title}, {size:,}" for title in OPERATIONS for size in sizes)]
    rows = []
    for timer in TIMERS:
        values = [results.median(STORE, name, timer, size) for name in OPERATIONS for size in sizes]
        rows.append([timer, *map(_number, values)])
    return _table(head, rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
