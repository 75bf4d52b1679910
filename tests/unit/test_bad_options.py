"""Bad options of `open` are refused before anything is contacted."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from duequeue import History, RetryPolicy
from duequeue.contract.faces import Face
from duequeue.contract.phrases import SECOND, PickyCodec


@pytest.mark.parametrize(
    "option",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a|b"},
        {"name": "a\0b"},
        {"name": "\ud800"},
        {"name": None},
        {"lease": timedelta(0)},
        {"lease": -SECOND},
        {"lease": 5},
        {"poll_interval": timedelta(0)},
        {"poll_interval": -SECOND},
        {"poll_interval": 5},
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": True},
        {"max_attempts": "3"},
        {"max_attempts": 2.5},
        {"retry": timedelta(seconds=1)},
        {"retry": 3},
        {"clock": 1},
        {"clock": datetime},  # whose now() is naive
        {"migrate": "no"},
        {"history": "yes"},
        {"codec": "json"},
        {"codec": 5},
        {"codec": int},
        {"codec": object},
        {"codec": ...},
        {"codec": PickyCodec("a\0b")},
        {"codec": PickyCodec("\ud800")},
    ],
    ids=ascii,
)
def test_a_bad_option_is_noticed_before_the_store_is_asked(
    face: Face, option: dict[str, Any]
) -> None:
    nobody_listens = "postgresql://nobody@127.0.0.1:1/nothing"
    with pytest.raises((ValueError, TypeError), match=next(iter(option))):
        face.open(
            **{"url": nobody_listens, "name": "orders", "retry": RetryPolicy.never(), **option}
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {"retry": 5},
        {"retry": timedelta(seconds=1)},
        {"clock": 3},
        {"clock": datetime},  # whose now() is naive
        {"migrate": 0},
        {"migrate": None},
        {"url": 5},
    ],
    ids=ascii,
)
def test_bad_arguments_are_refused_before_anybody_is_contacted(wrong: dict[str, Any]) -> None:
    nobody_listens = "postgresql://127.0.0.1:1/orders"
    options: dict[str, Any] = {"url": nobody_listens, "retry": RetryPolicy.never(), **wrong}
    (argument,) = wrong
    with pytest.raises((TypeError, ValueError), match=argument):
        History.open(**options)
