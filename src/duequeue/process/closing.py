"""Objects that a `with` block closes."""

from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self


class Closing:
    """Closes itself at the end of a `with` block, however the block ends."""

    def close(self) -> None:
        """Release all resources; closing twice is fine."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Type checkers do not see these methods, so that they report the mistake themselves.
    if not TYPE_CHECKING:

        async def __aenter__(self) -> NoReturn:
            name = type(self).__name__
            raise TypeError(f"enter a {name} with `with`, because it blocks, not with `async with`")

        async def __aexit__(self, *_: object) -> None:
            """Do nothing; Python looks for this method before it enters the block."""


class AsyncClosing:
    """Closes itself at the end of an `async with` block, however the block ends."""

    async def close(self) -> None:
        """Release all resources; closing twice is fine."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # Type checkers do not see these methods, so that they report the mistake themselves.
    if not TYPE_CHECKING:

        def __enter__(self) -> NoReturn:
            name = type(self).__name__
            raise TypeError(f"enter an {name} with `async with`, not with `with`")

        def __exit__(self, *_: object) -> None:
            """Do nothing; Python looks for this method before it enters the block."""
