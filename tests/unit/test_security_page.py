"""What SECURITY.md says about messages, whoever reads the log, the file or the code."""

import ast
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import duequeue
from duequeue import Queue
from duequeue.clock import ManualClock
from duequeue.contract.stage import until
from duequeue.port.fencing import RANDOM_BITS, new_token

SOURCE = Path(duequeue.__file__).parent
RUNS_CODE = {"pickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "code"}
SECRET = "my-secret-payload"


def test_the_library_does_not_unpickle_and_runs_no_text() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not RUNS_CODE & {each.name.split(".")[0] for each in node.names}, path
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in RUNS_CODE, path
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile"}, path


def test_payloads_and_headers_go_only_to_the_store(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(delivery: object) -> None:
        raise ValueError("not today")

    with (
        caplog.at_level(logging.DEBUG),
        Queue.open("memory:secrets", "q", clock=clock, history=True) as queue,
    ):
        for key in ("a", "b", "c", "d"):
            queue.offer(key, SECRET, headers={"x": SECRET})
        for settle in ("ack", "release", "bury"):
            delivery = queue.try_poll()
            assert delivery is not None
            getattr(delivery, settle)(*(["no"] if settle == "bury" else []))
        with queue.consume(refuse, max_attempts=1):
            until(lambda: len(queue.buried(10)) == 3)
        queue.drop("d")
    assert caplog.records
    assert SECRET not in caplog.text


def test_a_message_is_stored_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "q.db"
    with Queue.open(f"sqlite:///{file}", "q") as queue:
        queue.offer("a", SECRET)
        with closing(sqlite3.connect(file)) as other:
            found = other.execute("SELECT payload FROM duequeue_message").fetchone()
    assert SECRET in str(found)


def test_who_can_write_to_the_file_can_do_everything(tmp_path: Path) -> None:
    file = tmp_path / "q.db"
    with Queue.open(f"sqlite:///{file}", "q") as queue:
        queue.offer("a", SECRET)
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("DELETE FROM duequeue_message")
        assert queue.stats().total == 0


def test_the_token_of_a_lease_has_58_random_bits() -> None:
    assert RANDOM_BITS == 58
    parts = [new_token() // 10 for _ in range(500)]
    never_set, always_set = 2**58 - 1, 2**58 - 1
    for part in parts:
        assert 0 < part <= 2**58
        never_set &= ~(part - 1)
        always_set &= part - 1
    assert (never_set, always_set) == (0, 0)
