"""Looking inside a timer, to see whether it keeps what it should have let go."""

from collections.abc import Iterator, Sized


def containers_of(owner: object) -> Iterator[Sized]:
    """Return every list, tuple and dictionary inside an object."""
    for value in vars(owner).values():
        yield from _containers(value)


def _containers(value: object) -> Iterator[Sized]:
    if isinstance(value, dict | list | tuple):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from _containers(each)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from containers_of(value)
