"""`duequeue export` and `import`: every message comes back as it was."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from signal import SIGINT
from typing import Any

import msgspec
import pytest

from duequeue import BytesCodec, Message, OfferOutcome, Queue, TextCodec
from tests.cli.command import ROOT, command, environment
from tests.cli.conftest import DueQueue
from tests.cli.payload_types import Order

HOUR = timedelta(hours=1)
DUE = datetime(2031, 11, 18, 6, 0, 0, 123_000, tzinfo=UTC)


def everything(queue: Queue[Any]) -> list[Any]:
    return queue.list(limit=1000).messages


def move(duequeue: DueQueue, source: str, target: str) -> None:
    """Export one queue and import it as another."""
    exported = duequeue("export", "--queue", source, "-q")
    assert (exported.status, exported.err) == (0, "")
    imported = duequeue("import", "--queue", target, "-q", stdin=exported.out.encode())
    assert (imported.status, imported.out, imported.err) == (0, "", "")


def test_every_part_of_a_message_comes_back(
    duequeue: DueQueue, queue: Queue[Any], store_url: str
) -> None:
    queue.offer("a 😀/%2F", {"z": 1, "a": [1.5, None, "ü"]}, DUE, headers={"tenant": "7"})
    queue.offer("b", None, 2 * HOUR, expires=3 * HOUR)
    queue.offer("past", "x" * 5000, -HOUR)
    before = everything(queue)
    move(duequeue, "orders", "copy")
    with Queue[Any].open(store_url, "copy") as copy:
        assert everything(copy) == before


def test_a_message_that_was_put_off_comes_back_for_its_new_time(
    duequeue: DueQueue, queue: Queue[Any], store_url: str
) -> None:
    queue.offer("a", 1, -HOUR)
    delivery = queue.poll(0)
    assert delivery is not None
    assert delivery.release(HOUR)
    (put_off,) = everything(queue)
    move(duequeue, "orders", "copy")
    with Queue[Any].open(store_url, "copy") as copy:
        assert [each.due_at for each in everything(copy)] == [put_off.deliver_at]


@pytest.mark.parametrize(
    ("codec", "payloads"),
    [
        (TextCodec(), ["", "null", "ü\n\x00"]),
        (BytesCodec(), [b"", b"\xff\x00", b'{"a": 1}']),
        (Order, [Order(1), Order(2)]),
    ],
    ids=["text", "bytes", "typed"],
)
def test_every_type_comes_back(
    duequeue: DueQueue, store_url: str, codec: Any, payloads: list[Any]
) -> None:
    with (
        Queue[Any].open(store_url, "source", codec=codec) as source,
        Queue[Any].open(store_url, "copy", codec=codec) as copy,
    ):
        source.offer_batch([Message(f"k{at}", each, DUE) for at, each in enumerate(payloads)])
        move(duequeue, "source", "copy")
        assert [each.payload for each in everything(copy)] == payloads
        assert copy.offer_batch(
            [Message(f"k{at}", each, DUE) for at, each in enumerate(payloads)]
        ) == [OfferOutcome.IGNORED] * len(payloads), "the bytes are the same"


def test_json_that_we_would_write_otherwise_is_kept_byte_by_byte(
    duequeue: DueQueue, store_url: str
) -> None:
    class Loose(BytesCodec):
        type_name = "json"

    odd = b'{"b": 1,  "a": 2}'
    with (
        Queue[Any].open(store_url, "source", codec=Loose()) as source,
        Queue[Any].open(store_url, "copy", codec=Loose()) as copy,
    ):
        source.offer("a", odd, DUE)
        move(duequeue, "source", "copy")
        assert everything(copy)[0].payload == odd


def test_filters_and_files(duequeue: DueQueue, queue: Queue[Any], tmp_path: Path) -> None:
    queue.offer_batch([Message(key, 1, DUE) for key in ("a1", "a2", "b1")])
    ran = duequeue("export", "--prefix", "a", "--to", "out.jsonl")
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.startswith("exported 2 messages (")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [msgspec.json.decode(line)["key"] for line in lines] == ["a1", "a2"]
    queue.drop_all("orders")
    imported = duequeue("import", "out.jsonl")
    assert "imported 2 messages" in imported.err
    assert imported.err.endswith(": 2 created\n")
    again = duequeue("import", "out.jsonl")
    assert again.err.endswith(": 2 ignored\n")
    assert duequeue("import", "missing.jsonl").status == 1
    assert duequeue("export", "--to", "missing/out.jsonl").status == 1


def test_existing_messages_may_be_left_alone(duequeue: DueQueue, queue: Queue[Any]) -> None:
    queue.offer("a", "old", DUE)
    line = b'{"key": "a", "payload": "new"}\n'
    assert "1 ignored" in duequeue("import", "--no-replace", stdin=line).err
    assert everything(queue)[0].payload == "old"
    assert "1 updated" in duequeue("import", stdin=line).err
    assert everything(queue)[0].payload == "new"


BAD_LINES = {
    "{": "Input data was truncated",
    "[1]": "this is not a JSON object",
    '{"payload": 1}': "key is missing",
    '{"key": "", "payload": 1}': "key must have 1 to 200 characters",
    '{"key": "a"}': "payload or payload_b64 is missing",
    '{"key": "a", "payload_b64": "?"}': "payload_b64 is not base64",
    '{"key": "a", "payload": 1, "due": "now"}': "due is unknown",
    '{"key": "a", "payload": 1, "due_at": "2026-01-01"}': "due_at: '2026-01-01' has no zone",
    '{"key": "a", "payload": 1, "due_at": 7}': "due_at must be a string",
    '{"key": "a", "payload": 1, "headers": {"a": 1}}': "headers must map strings to strings",
    '{"key": "a", "payload": "x", "type": "text"}': "type is text, but the first line has json",
}


@pytest.mark.parametrize(("line", "complaint"), BAD_LINES.items(), ids=range(len(BAD_LINES)))
def test_a_bad_line_is_named(
    bare: DueQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, complaint: str
) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    monkeypatch.setenv("DUEQUEUE_URL", url)
    with Queue[Any].open(url, "orders") as queue:
        check_bad_line(bare, queue, line, complaint)


def check_bad_line(duequeue: DueQueue, queue: Queue[Any], line: str, complaint: str) -> None:
    good = "".join(f'{{"key": "k{number}", "payload": 1}}\n' for number in range(1000))
    text = f'{good}\n{{"key": "next", "payload": 1}}\n{line}\n'.encode()
    dry = duequeue("import", "--dry-run", stdin=text)
    assert (dry.status, queue.stats().total) == (1, 0)
    ran = duequeue("import", stdin=text)
    assert ran.status == 1
    last = ran.err.splitlines()[-1]
    assert last.startswith(f"duequeue: line 1,003: {complaint}"), last
    assert last.endswith("lines 1 to 1,000 are imported; fix it and pass --skip 1000")
    assert queue.stats().total == 1000
    rest = duequeue("import", "--skip", "1000", stdin=text.removesuffix(f"{line}\n".encode()))
    assert rest.err.endswith(": 1 created\n")


def test_a_dry_run_offers_nothing(duequeue: DueQueue, queue: Queue[Any]) -> None:
    ran = duequeue("import", "--dry-run", stdin=b'{"key": "a", "payload": 1}\n')
    assert (ran.status, queue.stats().total) == (0, 0)
    assert ran.err.startswith("checked 1 message (")
    assert duequeue("import", stdin=b"\n").status == 0


def test_another_type_than_the_queue_has_is_refused(duequeue: DueQueue, queue: Queue[Any]) -> None:
    ran = duequeue("import", stdin=b'{"key": "a", "type": "text", "payload": "x"}\n')
    assert ran.status == 1
    assert "line 1: type is text, not json" in ran.err


@pytest.mark.timeout(60, func_only=True)
def test_an_interrupted_import_says_where_to_go_on(queue: Queue[Any], shared_url: str) -> None:
    process = subprocess.Popen(
        command("import"),
        cwd=ROOT,
        env=environment(shared_url),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    for number in range(1500):
        process.stdin.write(f'{{"key": "k{number}", "payload": 1}}\n')
    process.stdin.flush()
    while queue.stats().total < 1000:
        assert process.poll() is None
    process.send_signal(SIGINT)
    _, complaints = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaints.splitlines()[-1] == (
        "duequeue: interrupted; lines 1 to 1,000 are imported; to continue, pass --skip 1000"
    )
    assert queue.stats().total == 1000


@pytest.mark.timeout(60, func_only=True)
def test_an_interrupted_export_says_so(queue: Queue[Any], shared_url: str) -> None:
    """The pipe fills up, so that the command is still at work when the signal comes."""
    queue.offer_batch(Message(f"k{number}", "x" * 10_000, DUE) for number in range(50))
    with subprocess.Popen(
        command("export"),
        cwd=ROOT,
        env=environment(shared_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(SIGINT)
        lines = process.stdout.read().splitlines()
        complaint = process.stderr.read().splitlines()[-1]
        assert process.wait(timeout=30) == 130
    assert complaint.startswith("duequeue: interrupted; the output has ")
    assert complaint.endswith("but not all of them")
    assert len(lines) < 49


def test_a_file_has_its_name_only_when_it_is_complete(
    duequeue: DueQueue, queue: Queue[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.offer_batch([Message(key, 1, DUE) for key in "abc"])
    shown: list[object] = []

    def interrupting(message: Any, payload_type: str) -> dict[str, Any]:
        if len(shown) == 2:
            raise KeyboardInterrupt
        shown.append(message)
        return {"key": message.key}

    monkeypatch.setattr("duequeue.cli.verbs.exporting._facts", interrupting)
    ran = duequeue("export", "--to", "out.jsonl")
    assert ran.status == 130
    assert not (tmp_path / "out.jsonl").exists()
    assert (tmp_path / "out.jsonl.partial").read_text() == '{"key":"a"}\n{"key":"b"}\n'
    last = ran.err.splitlines()[-1]
    assert last == "duequeue: interrupted; out.jsonl.partial has 2 messages, but not all of them"
