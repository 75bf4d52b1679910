"""Where the database, the queue and the token come from, and that no secret is printed."""

import os
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duequeue import Queue
from duequeue.cli import config, opening
from duequeue.cli.opening import Place
from duequeue.cli.parsing import parser_for
from tests.cli.conftest import DueQueue


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The file of the user's own defaults."""
    file = tmp_path / "home" / "duequeue" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


@pytest.fixture
def queue_names(tmp_path: Path) -> dict[str, str]:
    """Databases, each with a queue of its own name."""
    urls = {name: f"sqlite:///{tmp_path / name}.db" for name in ("a", "b", "c", "d")}
    for name, url in urls.items():
        Queue.open(url, f"queue-{name}").close()
    return urls


def test_the_nearest_default_counts(
    bare: DueQueue,
    queue_names: dict[str, str],
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert bare("queues").status == 2
    home.write_text(f'url = "{queue_names["a"]}"')
    assert bare("queues", "-q").lines == ["queue-a"]
    (tmp_path / "duequeue.toml").write_text(f'url = "{queue_names["b"]}"')
    assert bare("queues", "-q").lines == ["queue-b"]
    monkeypatch.setenv("DUEQUEUE_URL", queue_names["c"])
    assert bare("queues", "-q").lines == ["queue-c"]
    assert bare("queues", "-q", "--url", queue_names["d"]).lines == ["queue-d"]


def test_the_queue_has_a_default_too(
    bare: DueQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    (tmp_path / "duequeue.toml").write_text(f'url = "{url}"\nqueue = "orders"')
    assert bare("offer", "a", "1").status == 0
    assert bare("offer", "b", "1", "--queue", "invoices").status == 0
    assert bare("ls", "-q").lines == ["a"]
    monkeypatch.setenv("DUEQUEUE_QUEUE", "invoices")
    assert bare("ls", "-q").lines == ["b"]
    for verb, given in (("stats", ("-q",)), ("top", ("--count=1", "--jsonl"))):
        assert len(bare(verb, *given).lines) == 2, "it shows all queues"
        assert "the queue (default: all queues)" in " ".join(bare(verb, "--help").out.split())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("url = ", "cannot be read: Invalid value"),
        ('uri = "sqlite:///a.db"', "has 'uri', but the known names are url, queue, token"),
        ("url = 7", "must have a string in quotes for url"),
        ('token = "dq_a"', "has a token without a url"),
    ],
)
def test_a_mistake_in_the_file_is_named(
    bare: DueQueue, tmp_path: Path, text: str, complaint: str
) -> None:
    (tmp_path / "duequeue.toml").write_text(text)
    ran = bare("queues")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("duequeue: duequeue.toml ")
    assert complaint in ran.err


def place(*words: str) -> Place:
    """The place that a command would go to."""
    return opening.place_of(parser_for(["queues"]).parse_args(["queues", *words]))


def test_a_token_goes_only_where_it_belongs(
    bare: DueQueue, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text('url = "https://ours.example"\ntoken = "dq_home"')
    assert place() == Place("https://ours.example", "dq_home")
    assert place("--url", "https://other.example").token is None
    monkeypatch.setenv("DUEQUEUE_URL", "https://other.example")
    assert place().token is None
    monkeypatch.setenv("DUEQUEUE_TOKEN", "dq_environment")
    assert place().token == "dq_environment"
    assert place("--url", "sqlite:///a.db").token is None, "it is for servers"
    (tmp_path / "token").write_text("dq_file\n")
    assert place("--token-file", "token").token == "dq_file"
    assert "dq_" not in repr(place())


def test_a_token_of_the_environment_does_not_go_to_the_server_of_a_folder(
    bare: DueQueue, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUEQUEUE_TOKEN", "dq_environment")
    home.write_text('url = "https://ours.example"')
    assert place().token == "dq_environment"
    (tmp_path / "duequeue.toml").write_text('url = "https://theirs.example"')
    for words in (("queues",), ("endpoint", "ls")):
        ran = bare(*words)
        assert ran.status == 1
        assert "DUEQUEUE_TOKEN is not sent to the url in duequeue.toml" in ran.err
    assert place("--url", "https://ours.example").token == "dq_environment"
    monkeypatch.setenv("DUEQUEUE_URL", "https://theirs.example")
    assert place().token == "dq_environment", "the user has named the server"
    monkeypatch.delenv("DUEQUEUE_URL")
    (tmp_path / "duequeue.toml").write_text('url = "sqlite:///a.db"')
    assert place().token is None


def test_a_token_file_that_is_not_there(bare: DueQueue) -> None:
    ran = bare("queues", "--url", "https://ours.example", "--token-file", "missing")
    assert ran.status == 1
    assert "--token-file missing cannot be read" in ran.err


def test_without_a_home_there_are_no_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.devnull)
    for variable in config.VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    assert config.load_defaults()[:3] == (None, None, None)


def test_a_queue_that_is_offered_to_is_created(bare: DueQueue, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    for verb in ("ls", "stats", "queues"):
        ran = bare(verb, "--url", url)
        assert ran.status == 1
        assert "there is no file" in ran.err
    assert not (tmp_path / "new.db").exists()
    assert "pass --queue" in bare("offer", "a", "1", "--url", url).err
    created = bare("offer", "a", '"hello"', "--text", "--url", url, "--queue", "mails")
    assert created.err == "the queue 'mails' with the type 'text' is new\n"
    assert bare("ls", "--url", url, "--json").json[0]["payload"] == '"hello"'


def test_old_tables_are_not_migrated_by_the_way(bare: DueQueue, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    Queue[Any].open(url, "orders").close()
    with sqlite3.connect(tmp_path / "old.db") as file:
        file.execute("DELETE FROM duequeue_migration WHERE number > 5")
    file.close()
    for words in (("ls",), ("offer", "a", "1"), ("import",)):
        ran = bare(*words, "--url", url, stdin=b'{"key": "a", "payload": 1}\n')
        assert ran.status == 1
        assert "duequeue migrate" in ran.err


def test_the_ticks_of_an_expression_need_no_database(bare: DueQueue) -> None:
    ran = bare("cron", "next", "--expression", "0 9 1 1 *", "--zone", "Asia/Tokyo", "-n", "2", "-q")
    assert ran.status == 0
    first, second = (datetime.fromisoformat(line) for line in ran.lines)
    assert (first.hour, first.utcoffset()) == (9, timedelta(hours=9))
    assert second.year == first.year + 1
    assert bare("cron", "next", "--expression", "61 * * * *").status == 1
    assert bare("cron", "next", "--expression", "* * * * *", "--zone", "Mars").status == 1
    assert "pass --url" in bare("cron", "next", "ping").err
