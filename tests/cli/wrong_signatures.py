"""Functions that cannot be handlers."""


def none() -> None:
    """Take nothing."""


def two(delivery: object, total: object) -> None:
    """Take too much."""
