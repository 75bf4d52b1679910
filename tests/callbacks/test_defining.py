"""What comes of a change to an endpoint."""

from duequeue.callbacks.defining import Defined
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.records import Entry
from duequeue.callbacks.signing import new_secret
from duequeue.callbacks.signing_keys import new_keys


def test_a_new_secret_is_not_shown_by_accident() -> None:
    secret = new_secret()
    endpoint = Endpoint(id="shop", queue="orders", url="https://shop.example.com")
    made = Defined(Entry(endpoint, new_keys(secret)), secret)
    assert made.new_secret == secret
    for shown in (repr(made), str(made), f"{[made]}"):
        assert "shop" in shown
        assert secret not in shown
