"""Objects that only their `open` makes, and that stay in the process that opened them."""

from typing import NoReturn, Self


class Opened:
    """Refuses to be made by its class, to be pickled and to be copied."""

    def __new__(cls, *parts: object, **options: object) -> Self:
        """Refuse what users would give to `open`; `open` itself gives three parts or four."""
        if len(parts) not in {3, 4} or isinstance(parts[0], str) or options:
            raise TypeError(f"use {cls.__name__}.open(url, name), with the same options")
        return super().__new__(cls)

    def __reduce__(self) -> NoReturn:
        """Refuse `pickle` and `copy`."""
        name = type(self).__name__
        raise TypeError(
            f"{name} cannot be pickled or copied, because its connections belong to the process "
            f"that opened it; use {name}.open in each process"
        )
