"""A prefix selects the same messages by either plan, whether few keys have it or many."""

import pytest

from duequeue import Message
from duequeue.contract.faces import QueueFace
from duequeue.contract.fixtures import START
from duequeue.contract.phrases import HOUR
from duequeue.contract.test_list import PREFIXES, keys
from duequeue.stores.sql import listing

pytestmark = pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)


@pytest.mark.parametrize("few", [-1, 2, 1000], ids=["all walk", "some walk", "none walk"])
def test_a_prefix_selects_the_same_by_either_plan(
    queue: QueueFace, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(listing, "FEW_KEYS", few)
    names = list(dict.fromkeys(key for found in PREFIXES.values() for key in found))
    queue.offer_batch(
        [Message(key, 1, START + number % 3 * HOUR) for number, key in enumerate(names)]
    )
    in_order = keys(queue)
    for prefix, found in PREFIXES.items():
        assert keys(queue, prefix=prefix, limit=1) == [key for key in in_order if key in found]
        future = [one.key for one in queue.list(state="future").messages if one.key in found]
        assert keys(queue, prefix=prefix, state="future") == future
