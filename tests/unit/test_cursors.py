"""Cursors that nobody was given."""

import pytest

from duequeue import InvalidArgument, Queue
from duequeue.flows.cursors import cursor_at
from duequeue.port.listing import Place


@pytest.mark.parametrize("place", [Place(2**63 - 1, 1), Place(10**18, 1), Place(0, 2**63)])
def test_a_cursor_of_a_place_that_cannot_exist_is_refused(place: Place) -> None:
    with Queue.open("memory:cursors", "q") as queue:
        cursor = cursor_at(queue._context, place)  # noqa: SLF001 - its checksum is right
        with pytest.raises(InvalidArgument, match="must be the `next` of a page"):
            queue.list(after=cursor)
