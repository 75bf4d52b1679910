"""The farm of servers that other tests use."""

from pathlib import Path

from duequeue import Queue
from tests.fixtures.http_farm import running_farm


def test_no_file_outlives_the_farm(tmp_path: Path) -> None:
    with running_farm(tmp_path) as url, Queue.open(f"{url}/orders", "orders") as queue:
        queue.offer("a", 1)
        assert list(tmp_path.glob("*/orders.db"))
    assert list(tmp_path.iterdir()) == []
