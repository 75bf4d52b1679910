"""Objects that a `with` block closes."""

from types import TracebackType
from typing import Self


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
