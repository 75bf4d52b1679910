"""`duequeue token` as a user sees it."""

import stat
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from duequeue import Queue
from duequeue.cli import main
from duequeue.contract.stage import until
from duequeue.server import app_for
from duequeue.server.tokens import Scope, TokenFile, new_token
from tests.cli.command import Worker
from tests.server.served import served

HANDLERS = "tests.cli.handlers"


def test_create_list_and_revoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokens.json"
    place = ["--token-file", str(file)]
    arguments = ["--scope", "poll", "--scope", "settle", "--prefix", "mails", "--expires", "90d"]
    assert main(["token", "create", *place, *arguments, "--name", "the worker"]) == 0
    made = capsys.readouterr()
    token = made.out.strip()
    assert made.err == ""
    assert main(["token", "create", *place, "--scope", "admin"]) == 0
    assert "this token never expires; --expires 90d" in capsys.readouterr().err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token.split("_", 2)[2] not in file.read_text()
    first, second = TokenFile(file).grants()
    assert first.scopes == {Scope.POLL, Scope.SETTLE}
    assert second.scopes == {Scope.ADMIN}

    assert main(["token", "ls", *place]) == 0
    titles, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert titles == ["ID", "SCOPES", "QUEUES", "EXPIRES", "NAME"]
    assert lines[0][:3] == [first.id, "poll,settle", "mails*"]
    assert lines[0][4:] == ["the", "worker"]
    assert lines[1] == [second.id, "admin", "*", "never"]
    assert main(["token", "ls", *place, "-q"]) == 0
    assert capsys.readouterr().out.splitlines() == [first.id, second.id]
    assert main(["token", "ls", *place, "--json"]) == 0
    shown = msgspec.json.decode(capsys.readouterr().out)
    assert (shown[0]["scopes"], shown[0]["prefix"]) == (["poll", "settle"], "mails")
    assert (shown[1]["expires_at"], shown[1]["expired"]) == (None, False)
    assert not [each for each in shown if "hash" in each]

    assert main(["token", "revoke", *place, first.id]) == 0
    capsys.readouterr()
    assert [grant.id for grant in TokenFile(file).grants()] == [second.id]
    assert main(["token", "revoke", *place, first.id]) == 4
    assert first.id in capsys.readouterr().err


@pytest.mark.parametrize("lasts", ["999999999d", "-999999999d"])
def test_an_end_that_no_token_can_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lasts: str
) -> None:
    file = tmp_path / "tokens.json"
    place = ["--token-file", str(file), "--scope", "admin"]
    assert main(["token", "create", *place, f"--expires={lasts}"]) == 1
    assert capsys.readouterr().err.startswith("duequeue: --expires must ")
    assert not file.exists()


def test_create_asks_for_the_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    command = ["token", "create", "--token-file", str(tokens.path)]
    monkeypatch.setattr("sys.stdin", Typed("admin\n", isatty=False))
    assert main(command) == 1
    assert "pass --scope with what the token allows: offer, poll" in capsys.readouterr().err
    for line, status in (("poll, settle\n", 0), ("\n", 1), ("all\n", 1), ("", 1)):
        monkeypatch.setattr("sys.stdin", Typed(line, isatty=True))
        assert main(command) == status
        assert "What does the token allow" in capsys.readouterr().err
    (grant,) = tokens.grants()
    assert grant.scopes == {Scope.POLL, Scope.SETTLE}


class Typed(StringIO):
    """What a person types, or else a file."""

    def __init__(self, text: str, *, isatty: bool) -> None:
        super().__init__(text)
        self._isatty = isatty

    def isatty(self) -> bool:
        return self._isatty


def test_a_command_needs_only_the_scopes_of_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    producer, grant = new_token([Scope.OFFER], datetime.now(UTC), prefix="mails")
    tokens.add(grant)
    worker, grant = new_token([Scope.POLL, Scope.SETTLE], datetime.now(UTC), prefix="mails")
    tokens.add(grant)
    with served(app_for("memory:scopes-of-commands", token_file=tokens.path)) as server:
        monkeypatch.setenv("DUEQUEUE_URL", server.url)
        monkeypatch.setenv("DUEQUEUE_TOKEN", producer)
        for _ in range(2):
            assert main(["offer", "a", "1", "--queue", "mails"]) == 0
        said = capsys.readouterr().err
        assert said.count("is new") == 1, "only the first offer creates the queue"
        monkeypatch.setenv("DUEQUEUE_TOKEN", worker)
        assert main(["poll", "--ack", "-q"]) == 0
        assert capsys.readouterr().out == "a\n"


def test_a_worker_takes_the_token_of_the_configuration_file(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    token, grant = new_token([Scope.ADMIN], datetime.now(UTC))
    tokens.add(grant)
    with served(app_for("memory:token-of-worker", token_file=tokens.path)) as server:
        (tmp_path / "duequeue").mkdir()
        file = tmp_path / "duequeue" / "config.toml"
        file.write_text(f'url = "{server.url}"\ntoken = "{token}"')
        with (
            Queue.open(server.url, "mails", token=token) as queue,
            Worker(f"{HANDLERS}:tell", None, "--queue=mails", XDG_CONFIG_HOME=str(tmp_path)),
        ):
            queue.offer("a", 1)
            until(lambda: queue.stats().total == 0)


def test_migrate_asks_a_server_before_it_says_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DUEQUEUE_TOKEN", raising=False)
    tokens = TokenFile(tmp_path / "tokens.json")
    token, grant = new_token([Scope.READ], datetime.now(UTC))
    tokens.add(grant)
    (tmp_path / "token").write_text(token)
    with served(app_for("memory:migrated", token_file=tokens.path)) as server:
        assert main(["migrate", "--url", server.url]) == 1
        assert "401" in capsys.readouterr().err
        file = str(tmp_path / "token")
        assert main(["migrate", "--url", server.url, "--token-file", file]) == 0
        assert capsys.readouterr().out == f"{server.url} is up to date\n"


def test_the_environment_may_name_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DUEQUEUE_TOKEN_FILE", str(tmp_path / "tokens.json"))
    assert main(["token", "create", "--scope", "admin"]) == 0
    assert len(TokenFile(tmp_path / "tokens.json").grants()) == 1


def test_expired_tokens_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--token-file", str(tmp_path / "tokens.json")]
    main(["token", "create", *place, "--scope", "admin", "--expires", "0s"])
    main(["token", "ls", *place])
    assert "  expired" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"), [("{", "not a file of tokens"), ('{"tokens": 1}', "not a file of tokens")]
)
def test_a_broken_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(text)
    assert main(["token", "ls", "--token-file", str(file)]) == 1
    assert words in capsys.readouterr().err
    assert main(["token", "create", "--token-file", str(file), "--scope", "admin"]) == 1
    assert file.read_text() == text


def test_an_unknown_scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--token-file", str(tmp_path / "tokens.json")]
    assert main(["token", "create", *place, "--scope", "everything"]) == 1
    assert "offer, poll, settle, read, admin" in capsys.readouterr().err
    assert not (tmp_path / "tokens.json").exists()
