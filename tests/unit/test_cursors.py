"""Cursors that nobody was given."""

import pytest

from duequeue import InvalidArgument, Queue
from duequeue.flows.listing import cursor_at
from duequeue.port.listing import Position


@pytest.mark.parametrize(
    "position", [Position(2**63 - 1, 1), Position(10**18, 1), Position(0, 2**63)]
)
def test_a_cursor_of_a_place_that_cannot_exist_is_refused(position: Position) -> None:
    with Queue.open("memory:cursors", "q") as queue:
        cursor = cursor_at(queue._context, position)  # noqa: SLF001 - its checksum is right
        with pytest.raises(InvalidArgument, match="must be the `next` of a page"):
            queue.list(after=cursor)
