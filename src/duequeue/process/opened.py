"""Objects that only `open` creates, and that stay in the process that opened them."""

from typing import NoReturn, Self


class OnlyOpened:
    """A class that cannot be called, and whose objects can be neither pickled nor copied."""

    def __new__(cls, *parts: object, **options: object) -> Self:
        """Refuse the arguments that users pass to `open`; `open` passes three or four parts."""
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
