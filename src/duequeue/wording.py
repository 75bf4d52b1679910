"""Spans of time, in words."""

from datetime import timedelta


def words_for(span: timedelta) -> str:
    """Write a span of time the way it is said."""
    seconds = max(0.0, span.total_seconds())
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= size * (2 if unit == "days" else 1):
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds * 1000:.0f} ms"
