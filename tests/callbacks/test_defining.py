"""What comes of a change to an endpoint."""

import pytest

from duequeue.callbacks.defining import Defined
from duequeue.callbacks.endpoint import Endpoint
from duequeue.callbacks.records import StoredEndpoint
from duequeue.callbacks.signing import new_keys, new_secret


def test_a_new_secret_is_not_shown_by_accident() -> None:
    secret = new_secret()
    endpoint = Endpoint(id="shop", queue="orders", url="https://shop.example.com")
    made = Defined(StoredEndpoint(endpoint, new_keys(secret)), secret)
    assert made.new_secret == secret
    for shown in (repr(made), str(made), f"{[made]}"):
        assert "shop" in shown
        assert secret not in shown


def test_an_endpoint_keeps_responses_no_longer_than_anybody_else_may() -> None:
    week = 7 * 24 * 3_600_000
    Endpoint(id="shop", queue="orders", url="https://shop.example.com", keep=week).checked()
    with pytest.raises(ValueError, match="keep must be at most 7 days"):
        Endpoint(id="shop", queue="orders", url="https://shop.example.com", keep=week + 1).checked()
