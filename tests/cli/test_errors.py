"""One clear line for each thing that goes wrong, and never a secret or a traceback."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from duequeue import Queue
from duequeue.cli.commands import COMMANDS
from duequeue.cli.output import BOLD, paint
from tests.cli.command import ROOT, environment
from tests.cli.conftest import DueQueue, Ran
from tests.fixtures.postgres import PostgresServer

SECRET = "s3cr3t"
FILE = "sqlite:///queue.db"


def assert_one_line(ran: Ran, status: int) -> None:
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith("duequeue: ")
    assert ran.err.count("\n") == 1
    assert SECRET not in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("verb", ["ls", "stats", "doctor", "queues"])
def test_an_unreachable_server(bare: DueQueue, verb: str) -> None:
    url = f"postgresql://app:{SECRET}@127.0.0.1:1/app"
    ran = bare(verb, "--url", url)
    assert_one_line(ran, 3)
    assert "127.0.0.1" in ran.err


@pytest.mark.usefixtures("impatient")
def test_a_wrong_login(
    bare: DueQueue, postgres_server: PostgresServer, ready_database: str
) -> None:
    location = ready_database.rpartition("@")[2].removeprefix("postgresql://")
    ran = bare("ls", "--url", f"postgresql://nobody:{SECRET}@{location}")
    assert_one_line(ran, 1)
    assert "nobody" in ran.err


def test_an_unknown_scheme_and_a_url_as_a_word(bare: DueQueue) -> None:
    assert_one_line(bare("ls", "--url", f"oracle://app:{SECRET}@host/db"), 1)
    extra = bare("ls", f"postgresql://app:{SECRET}@host/db")
    assert extra.status == 2
    assert SECRET not in extra.err


@pytest.mark.parametrize("kind", [ValueError, TypeError, RuntimeError])
def test_a_mistake_of_ours_is_shown_as_one(
    bare: DueQueue,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: type[Exception],
) -> None:
    def fail(_: object) -> int:
        raise kind("of ours")

    monkeypatch.setattr("duequeue.cli.verbs.completion.run", fail)
    assert bare("completion", "bash")[:2] == (1, "")
    (record,) = caplog.records
    assert "mistake in DueQueue" in record.message
    assert record.exc_info is not None
    assert record.exc_info[0] is kind


@pytest.mark.parametrize("others", ["", "logging.getLogger('duequeue').addHandler(quiet)"])
def test_a_mistake_of_ours_has_a_traceback_on_stderr(others: str) -> None:
    code = (
        "import logging, sys; from duequeue.cli import main; from duequeue.cli.verbs import stats\n"
        f"quiet = logging.NullHandler(); {others or 'pass'}\n"
        "stats.run = lambda given: given.nothing\n"
        "sys.exit(main(['stats', '--url', 'memory:']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("duequeue: this is a mistake in DueQueue")
    assert "Traceback (most recent call last):" in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("AttributeError")


@pytest.mark.parametrize(
    "words",
    [
        ("token", "create", "--scope", "read", "--token-file="),
        ("token", "create", "--scope", "read", "--token-file=no-folder/tokens.json"),
        ("token", "revoke", "x", "--token-file=/"),
        ("token", "ls", "--token-file=."),
        ("endpoint", "set", "\udcff", "https://shop.example.com", "--queue", "q", "--url", FILE),
        ("endpoint", "ls", "--queue", "\udcff", "--url", FILE),
        ("endpoint", "rm", "\udcff", "--yes", "--url", FILE),
        ("ls", "--url", "http://[::1"),
    ],
    ids=" ".join,
)
def test_what_the_system_refuses_is_one_line(bare: DueQueue, words: tuple[str, ...]) -> None:
    with Queue.open(FILE, "q"):
        pass
    assert_one_line(bare(*words), 1)


def test_a_refused_argument_is_one_line(bare: DueQueue) -> None:
    ran = bare("offer", "a" * 201, "1", "--queue", "orders", "--url", "memory:")
    assert_one_line(ran, 1)
    assert ran.err.startswith("duequeue: key")


def test_a_missing_driver(tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('not here')")
    ran = subprocess.run(
        [sys.executable, "-m", "duequeue", "ls", "--url", "postgresql://localhost/app"],
        env=environment(None) | {"PYTHONPATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "duequeue: PostgreSQL needs psycopg: pip install 'duequeue[postgres]'\n"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("fly",),
        ("ls", "--state", "buried"),
        ("ls", "--limit", "0"),
        ("ls", "--json", "--quiet"),
        ("offer",),
        ("offer", "a", "1", "--due", "tomorrow"),
        ("offer", "a", "1", "--header", "x"),
        ("reschedule", "a"),
        ("cron", "install"),
        ("completion", "powershell"),
        ("top", "--interval", "soon"),
    ],
)
def test_arguments_that_cannot_be_parsed(bare: DueQueue, words: tuple[str, ...]) -> None:
    ran = bare(*words)
    assert (ran.status, ran.out) == (2, "")
    assert "error: " in ran.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_describes_itself(bare: DueQueue, command: object) -> None:
    name = getattr(command, "name", "")
    ran = bare(name, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: duequeue {name}")
    assert f"  {name}" in bare("--help").out


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from duequeue.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('duequeue.cli.verbs')\n"
        "       or name in ('duequeue.cli.worker', 'duequeue.cli.pipeline')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    lines = "".join(f'{{"key": "k{number}", "payload": 1}}\\n' for number in range(3000))
    script = (
        f"printf '{lines}' | {sys.executable} -m duequeue import --queue orders -q && "
        f"{sys.executable} -m duequeue ls --all --jsonl | head -n 1"
    )
    ran = subprocess.run(
        ["/bin/bash", "-c", script],
        env=environment(url),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout.count("\n"), ran.stderr) == (1, "")


def test_colours_are_only_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert paint("a", BOLD) == "a"
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert paint("a", BOLD) == "\x1b[1ma\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("a", BOLD) == "a"


def test_the_version_is_printed(bare: DueQueue) -> None:
    assert bare("--version") == (0, f"duequeue {version('duequeue')}\n", "")
