"""The farm of servers that other tests use."""

import tempfile
from pathlib import Path

import pytest

from duequeue import Queue
from tests.fixtures.http_farm import running_farm


def test_no_file_outlives_the_farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with running_farm() as url, Queue.open(f"{url}/orders", "orders") as queue:
        queue.offer("a", 1)
        assert list(tmp_path.glob("*/orders.db"))
    assert list(tmp_path.iterdir()) == []
