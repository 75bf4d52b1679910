"""`duequeue endpoint`, on a database and at a server."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from duequeue import Queue, queues
from duequeue.callbacks.signing import new_secret
from duequeue.cli import main
from duequeue.queue_names import OWN_QUEUES
from duequeue.server import app_for
from tests.server.served import served

URL = "https://shop.example.com/callbacks"


@pytest.fixture(params=["database", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    database = f"sqlite:///{tmp_path / 'endpoints.db'}"
    if request.param == "database":
        yield database
        return
    with served(app_for(database)) as server:
        yield server.url


class Ran:
    def __init__(self, capsys: pytest.CaptureFixture[str], place: str, *words: str) -> None:
        verb, *rest = words
        self.status = main(["endpoint", verb, *rest, "--url", place])
        self.out, self.err = capsys.readouterr()


def test_an_endpoint_from_its_definition_to_its_removal(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> Ran:
        return Ran(capsys, place, *words)

    made = run("set", "shop", URL, "--queue", "orders", "--timeout", "5s", "-q")
    assert made.status == 0
    assert made.out.startswith("whsec_")
    changed = run("set", "shop", URL, "--queue", "orders", "--rate", "2/s", "--backoff", "1s,1m,2")
    assert (changed.status, "whsec_" in changed.out) == (0, False)
    listed = run("ls", "--jsonl")
    assert '"rate":2.0' in listed.out
    assert run("ls", "-q", "--queue", "orders").out == "shop\n"
    assert run("ls", "-q", "--queue", "other").out == ""
    assert run("disable", "shop", "--reason", "moving").status == 0
    assert "disabled: moving" in run("ls").out
    assert "was already disabled" in run("disable", "shop").err
    assert run("enable", "shop").status == 0
    rotated = run("rotate", "shop", "--overlap", "1h", "--kind", "v1a")
    assert "whsk_" in rotated.out
    assert "not shown again" in rotated.err
    assert "would be removed" in run("rm", "shop", "--dry-run").out
    assert run("rm", "shop").status == 1, "nobody can answer"
    assert run("rm", "shop", "--yes").status == 0
    for words in (("enable",), ("disable",), ("rotate",), ("rm", "--yes")):
        missing = run(words[0], "shop", *words[1:])
        assert (missing.status, "no endpoint has this id" in missing.err) == (4, True)


def test_an_endpoint_that_was_not_removed_after_all(
    place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Ran(capsys, place, "set", "shop", URL, "--queue", "orders")
    monkeypatch.setattr("duequeue.cli.verbs.endpoint.removing.agreed", lambda *_: False)
    assert Ran(capsys, place, "rm", "shop").status == 1
    assert Ran(capsys, place, "ls", "-q").out == "shop\n"


def test_the_definitions_of_the_service_are_not_among_the_queues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"sqlite:///{tmp_path / 'shop.db'}"
    assert Ran(capsys, place, "set", "shop", URL, "--queue", "orders").status == 0
    with Queue.open(place, "orders") as queue:
        queue.offer("a", 1)
    assert queues(place) == [("orders", "json")]
    assert main(["ls", "-q", "--url", place]) == 0, "it is the only queue"
    assert capsys.readouterr().out == "a\n"


def test_a_command_on_a_database_needs_no_server(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'shop.db'}"
    words = ["endpoint", "set", "shop", URL, "--queue", "orders", "--url", place]
    program = f"""
import sys
sys.modules["duequeue.server"] = sys.modules["uvicorn"] = None
from duequeue.cli import main
sys.exit(main({words!r}))
"""
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "whsec_" in made.stdout


def test_the_queues_of_the_server_itself_have_no_endpoints(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for own in OWN_QUEUES:
        ran = Ran(capsys, place, "set", "shop", URL, "--queue", own)
        assert (ran.status, "belongs to the server itself" in ran.err) == (1, True)


def test_an_endpoint_of_a_prefix_is_named_with_it(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Ran(capsys, place, "set", "shop/mails", URL, "--queue", "shop-mails").status == 0
    assert Ran(capsys, place, "set", "/mails", URL, "--queue", "mails").status == 0
    assert Ran(capsys, place, "ls", "-q").out.split() == ["mails", "shop/mails"]
    assert Ran(capsys, place, "rm", "/mails", "--yes").status == 0
    assert Ran(capsys, place, "ls", "-q").out == "shop/mails\n"


def test_a_prefix_may_begin_with_a_slash(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> Ran:
        return Ran(capsys, place, *words)

    for identity, queue in (("/team/hook", "/team-mails"), ("team/hook", "team-mails")):
        assert run("set", identity, URL, "--queue", queue).status == 0
    assert run("disable", "/team/hook").status == 0
    assert run("rotate", "/team/hook").status == 0
    assert run("ls", "-q").out.split() == ["/team/hook", "team/hook"]
    assert "active" in run("ls", "--queue", "team-mails").out
    assert run("rm", "/team/hook", "--yes").status == 0
    assert run("ls", "-q").out == "team/hook\n"
    refused = run("set", "//hook", URL, "--queue", "mails")
    assert (refused.status, "queue must begin with '/'" in refused.err) == (1, True)


@pytest.mark.parametrize("verb", ["enable", "disable", "rotate", "rm --yes"])
def test_no_endpoint_has_an_id_that_is_too_long(
    place: str, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    Ran(capsys, place, "set", "shop", URL, "--queue", "orders")
    ran = Ran(capsys, place, *verb.split(), f"{'a' * 100}/{'b' * 99}")
    assert (ran.status, "no endpoint has this id" in ran.err) == (4, True)


@pytest.mark.parametrize("verb", ["ls", "enable shop", "rotate shop", "rm shop --yes"])
def test_only_a_definition_creates_a_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    file = tmp_path / "misspelt.db"
    ran = Ran(capsys, f"sqlite:///{file}", *verb.split())
    assert (ran.status, "there is no file" in ran.err, file.exists()) == (1, True, False)


def test_a_database_that_cannot_be_opened_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "missing"
    ran = Ran(capsys, f"sqlite:///{folder / 'x.db'}", "set", "shop", URL, "--queue", "orders")
    assert ran.status != 0
    assert str(folder) in ran.err


def test_a_secret_comes_from_a_file_and_is_never_shown(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = new_secret()
    (tmp_path / "secret").write_text(f"{secret}\n")
    file = ("--secret-file", str(tmp_path / "secret"))
    made = Ran(capsys, place, "set", "shop", URL, "--queue", "orders", "--json", *file)
    assert made.status == 0
    assert secret not in made.out + made.err
    refused = Ran(capsys, place, "rotate", "shop", *file)
    assert refused.status == 1
    assert "secret must differ" in refused.err
    assert secret not in refused.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("set", "shop", "ftp://x", "--queue", "q"), "url must begin"),
        (("set", "no id", URL, "--queue", "q"), "id must have"),
        (("set", "a" * 600, URL, "--queue", "q"), "id must have"),
        (("set", "shop", URL, "--queue", "q" * 101), "duequeue: queue"),
        (("set", "shop", URL, "--queue", "q", "--type", "t" * 201), "duequeue: type"),
        (("set", "shop", URL, "--queue", "q", "--attempts", "1001"), "duequeue: attempts"),
        (("set", "shop", URL, "--queue", "q", "--concurrency", "10001"), "duequeue: concurrency"),
        (("disable", "shop", "--reason", "r" * 1001), "duequeue: reason"),
        (("set", "shop", URL, "--queue", "q", "--rate", "fast"), "rate must be"),
        (("set", "shop", URL, "--queue", "q", "--backoff", "1s:2s:x"), "is not a backoff"),
        (("set", "shop", URL, "--queue", "q", "--secret-file", "/no/file"), "--secret-file"),
    ],
    ids=[
        "url",
        "id",
        "long-id",
        "queue",
        "type",
        "attempts",
        "concurrency",
        "reason",
        "rate",
        "backoff",
        "secret-file",
    ],
)
def test_mistakes_name_the_argument(
    place: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], named: str
) -> None:
    Ran(capsys, place, "set", "shop", URL, "--queue", "q")
    ran = Ran(capsys, place, *words)
    assert ran.status == 1
    assert named in ran.err


def test_requests_that_need_no_body_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    lengths: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            lengths.append(self.headers["content-length"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"endpoints": []}')

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            listed = Ran(capsys, f"http://127.0.0.1:{server.server_port}", "ls")
        finally:
            server.shutdown()
            thread.join()
    assert (listed.status, lengths) == (0, [None])


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://user:hunter2@127.0.0.1:1", "url must not hold a user or password"),
        ("http://127.0.0.1:1?other=1", "url of a server has only one option, ssl_ca"),
        ("http://127.0.0.1:1", "the server at http://127.0.0.1:1 cannot be reached"),
        ("httpx://127.0.0.1:1", "names no store"),
    ],
)
def test_urls_of_servers_are_checked_as_everywhere(
    url: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capsys, url, "ls")
    assert ran.status != 0
    assert named in ran.err
    assert "hunter2" not in ran.err
