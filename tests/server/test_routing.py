"""Routes of frequent paths are remembered, but not without end."""

from duequeue.server.app import ROUTES

PLACE = b"/v1/queues/orders/messages/"


def is_remembered(path: bytes) -> bool:
    return ROUTES.match("GET", path) is ROUTES.match("GET", path)


def test_a_path_is_forgotten_after_many_others() -> None:
    first = ROUTES.match("GET", PLACE + b"a")
    assert is_remembered(PLACE + b"a")
    for number in range(2000):
        ROUTES.match("GET", PLACE + b"%d" % number)
    again = ROUTES.match("GET", PLACE + b"a")
    assert again == first
    assert again is not first


def test_a_long_path_is_not_remembered() -> None:
    assert not is_remembered(PLACE + b"a" * 200)
