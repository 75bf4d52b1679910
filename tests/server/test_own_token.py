"""`duequeue serve` without a file of tokens: the token that it makes, unix sockets, and `--dev`."""

import asyncio
import os
import pty
import socket
import stat
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from duequeue import AsyncQueue, Queue, RetryPolicy
from duequeue.cli.admitting import access_for
from duequeue.errors import InvalidArgument, StoreError, StoreUnavailable
from duequeue.process.own_token import (
    FOLDER_VARIABLE,
    find_own_token,
    keep_own_token,
    own_token_file,
    remove_own_token,
)
from duequeue.server.tokens import Scope, new_token
from duequeue.server.unix_socket import OWNER_ONLY, listening_unix_socket
from tests.cli.command import run
from tests.fixtures.servers import free_port
from tests.server.command import PATIENCE, ServeProcess, refused, serving

PUT = "/v1/queues/q/messages/a"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    with serving("--no-push", folder=tmp_path_factory.mktemp("own")) as running:
        yield running


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be another user, who has made no token."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="another program"),
        pytest.param({"Host": "127.0.0.1:8080"}, id="nginx as it is set up by default"),
        pytest.param({"Origin": "http://localhost:3000"}, id="page on another port"),
        pytest.param({"Sec-Fetch-Site": "same-origin"}, id="page that pretends"),
    ],
)
def test_nobody_gets_in_without_the_token(own: ServeProcess, headers: dict[str, str]) -> None:
    with httpx.Client(base_url=own.url, headers=headers, trust_env=False) as http:
        refusal = http.get("/v1/queues")
        assert refusal.status_code == 401
        assert "it printed the name of the file" in refusal.json()["detail"]
        assert str(own_token_file(own.port)) not in refusal.text
        assert http.put(PUT).status_code == 401
        assert http.delete("/v1/queues/q/messages?confirm=q").status_code == 401
        assert http.get("/healthz").status_code == 200


def test_clients_and_commands_of_the_same_user_find_the_token(own: ServeProcess) -> None:
    async def offer() -> None:
        async with await AsyncQueue.open(own.url, "found") as queue:
            await queue.offer("b", 2)

    with Queue.open(own.url, "found") as queue:
        queue.offer("a", 1)
    asyncio.run(offer())
    by_name = f"http://localhost:{own.port}"
    assert run("ls", "--queue", "found", "--quiet", url=by_name).stdout.split() == ["a", "b"]
    assert run("endpoint", "ls", url=by_name).returncode == 0


@pytest.mark.usefixtures("elsewhere")
def test_another_user_does_not_find_it(own: ServeProcess) -> None:
    with pytest.raises(StoreError, match="401"):
        Queue.open(own.url, "found")
    assert "401" in run("queues", url=own.url).stderr


def test_only_its_owner_may_read_the_file(own: ServeProcess) -> None:
    file = own_token_file(own.port)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    token = find_own_token("127.0.0.1", own.port)
    assert token is not None
    assert token not in own.first_line


def test_the_next_start_keeps_the_token(tmp_path: Path) -> None:
    port = free_port()
    with serving("--no-push", folder=tmp_path, port=port) as first, first.client() as http:
        assert http.put(PUT).status_code == 200
        notice = first.read_line()
        assert str(own_token_file(port)) in notice
        assert (find_own_token("127.0.0.1", port) or "-") not in notice
        first.terminate()
        with serving("--no-push", folder=tmp_path, port=port):
            assert http.get(PUT).status_code == 200


def test_a_port_that_the_system_chose_leaves_no_token_behind(elsewhere: Path) -> None:
    with serving("--no-push", folder=elsewhere) as server, server.client() as http:
        assert http.put(PUT).status_code == 200
        assert own_token_file(server.port).exists()
        assert server.terminate() == 0
    assert list((elsewhere / "duequeue").iterdir()) == []


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("chosen", "found"), [(0, True), (1, False)])
def test_a_token_stays_that_another_server_may_need(*, chosen: int, found: bool) -> None:
    given = Namespace(token_file=None, dev=False, socket=None, port=chosen)
    if found:
        keep_own_token(1, new_token([Scope.ADMIN], datetime.now(UTC))[0])
    with ExitStack() as at_end:
        access_for(given, "127.0.0.1", 1, at_end)
        kept = find_own_token("127.0.0.1", 1)
    assert kept is not None
    assert find_own_token("127.0.0.1", 1) == kept


@pytest.mark.usefixtures("elsewhere")
def test_a_token_that_took_the_place_of_another_stays() -> None:
    keep_own_token(1, "dq_2")
    remove_own_token(1, "dq_1")
    remove_own_token(2, "dq_1")
    assert find_own_token("127.0.0.1", 1) == "dq_2"


@pytest.mark.usefixtures("elsewhere")
def test_a_token_goes_only_to_the_port_of_this_machine_that_it_was_made_for() -> None:
    keep_own_token(8080, "dq_1")
    assert find_own_token("localhost", 8080) == "dq_1"
    assert find_own_token("localhost", 8081) is None
    assert find_own_token("example.org", 8080) is None


@pytest.mark.usefixtures("elsewhere")
def test_another_listener_on_the_port_of_a_stopped_server_gets_its_token() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger, ThreadPoolExecutor(1) as pool:
        port = stranger.getsockname()[1]
        keep_own_token(port, "dq_1")
        opening = pool.submit(
            Queue.open, f"http://127.0.0.1:{port}", "q", retry=RetryPolicy.never()
        )
        with stranger.accept()[0] as connection:
            assert b"Authorization: Bearer dq_1\r\n" in connection.recv(65536)
        with pytest.raises(StoreUnavailable):
            opening.result(PATIENCE)


@pytest.mark.usefixtures("elsewhere")
def test_servers_that_start_at_once_share_one_token() -> None:
    with ThreadPoolExecutor(8) as pool:
        kept = set(pool.map(lambda number: keep_own_token(1, f"dq_{number}"), range(50)))
    assert len(kept) == 1
    assert [each.name for each in own_token_file(1).parent.iterdir()] == ["token-1"]


def test_a_token_that_others_could_read_is_refused(elsewhere: Path) -> None:
    port = free_port()
    keep_own_token(port, "dq_1")
    assert "has no token: delete this file" in refused("--port", str(port), folder=elsewhere)
    own_token_file(port).chmod(0o640)
    assert "not for this user alone" in refused("--port", str(port), folder=elsewhere)


def test_a_folder_that_cannot_be_written_is_named(elsewhere: Path) -> None:
    (elsewhere / "duequeue").write_text("")
    with pytest.raises(InvalidArgument, match=r"pass --token-file or --socket"):
        keep_own_token(1, "dq_1")
    assert find_own_token("localhost", 1) is None


def test_a_folder_relative_to_the_working_directory_is_not_used(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(elsewhere / "home"))
    monkeypatch.setenv(FOLDER_VARIABLE, "state")
    assert own_token_file(1).is_relative_to(elsewhere / "home")


def test_a_token_that_was_passed_comes_first(
    own: ServeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUEQUEUE_TOKEN", "dq_another")
    with pytest.raises(StoreError, match="401"):
        Queue.open(own.url, "q")


def test_another_address_still_needs_a_file_of_tokens(tmp_path: Path) -> None:
    assert "tokens are needed" in refused("--host", "0.0.0.0", folder=tmp_path)  # noqa: S104


class OnSocket(ServeProcess):
    """A server on a unix socket."""

    def __init__(self, path: Path, *arguments: str) -> None:
        self.path = path
        super().__init__("--socket", str(path), "--no-push", *arguments, folder=path.parent)

    def client(self) -> httpx.Client:
        transport = httpx.HTTPTransport(uds=str(self.path))
        return httpx.Client(base_url="http://anything", transport=transport)


def test_a_unix_socket_is_for_its_owner_and_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "due.sock"
    server = OnSocket(path)
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with server.client() as http:
            assert http.put(PUT).status_code == 200
            page = {"Origin": "http://localhost:3000"}
            assert http.put(PUT, headers=page).status_code == 403
        assert "in use" in refused_socket(path)
    finally:
        assert server.terminate() == 0
    server.rest()
    assert not path.exists()


def test_dev_needs_no_token_on_a_unix_socket(tmp_path: Path) -> None:
    server = OnSocket(tmp_path / "due.sock", "--dev")
    try:
        assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
        with server.client() as http:
            assert http.put(PUT).status_code == 200
            page = {"Origin": "http://localhost:3000"}
            assert http.put(PUT, headers=page).status_code == 403
    finally:
        server.kill()
        server.rest()


def test_a_unix_socket_with_tokens_needs_them(tmp_path: Path) -> None:
    file = str(tmp_path / "tokens.json")
    run("token", "create", "--token-file", file, "--scope", "admin")
    server = OnSocket(tmp_path / "due.sock", "--token-file", file)
    try:
        assert stat.S_IMODE(server.path.stat().st_mode) == 0o666
        with server.client() as http:
            assert http.put(PUT).status_code == 401
    finally:
        server.kill()
        server.rest()


def test_a_unix_socket_of_a_killed_server_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "due.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    server = OnSocket(path)
    server.kill()
    server.rest()


def test_dev_takes_the_token_that_clients_find_from_a_server_without_dev(tmp_path: Path) -> None:
    port = free_port()
    with serving("--no-push", folder=tmp_path, port=port):
        pass
    with (
        serving("--dev", "--no-push", folder=tmp_path, port=port) as server,
        Queue.open(server.url, "q") as queue,
    ):
        queue.offer("a", 1)
        assert run("ls", "--queue", "q", "--quiet", url=server.url).stdout == "a\n"
        with pytest.raises(StoreError, match="not known here"):
            Queue.open(server.url, "q", token="dq_another")


def test_a_server_that_ends_leaves_the_unix_socket_of_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "due.sock"
    with ExitStack() as ending:
        listener = ending.enter_context(listening_unix_socket(str(path), OWNER_ONLY))
        listener.close()  # as a server does that still has requests to end
        with listening_unix_socket(str(path), OWNER_ONLY) as following:
            ending.close()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
            following.accept()[0].close()
    assert not path.exists()


def test_a_unix_socket_without_a_path_is_refused() -> None:
    with (
        pytest.raises(InvalidArgument, match="socket must be the path"),
        listening_unix_socket("", OWNER_ONLY),
    ):
        pass


def test_a_unix_socket_excludes_a_host_and_a_port(tmp_path: Path) -> None:
    assert "exclude each other" in refused_socket(tmp_path / "s", "--host", "127.0.0.1")
    assert "--port" in refused_socket(tmp_path / "s", "--port", "1")
    assert "its folder does not exist" in refused_socket(tmp_path / "not there" / "s")


def refused_socket(path: Path, *arguments: str) -> str:
    """Return what the command prints when it does not start."""
    return run("serve", "--socket", str(path), *arguments).stderr


def test_dev_needs_no_token_and_says_in_red_that_it_is_open(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "duequeue", "serve", "--dev", "--port", "0", "--no-push"]
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, env=environment) as process:
        os.close(theirs)
        with open(ours, errors="replace") as terminal, suppress(OSError):  # noqa: PTH123 - a number
            address = terminal.readline().split()[-1]
            token, warning = terminal.readline(), terminal.readline()
            assert httpx.put(address + PUT, trust_env=False).status_code == 200
            foreign = {"Origin": "http://localhost:3000"}
            refusal = httpx.put(address + PUT, headers=foreign, trust_env=False)
            assert refusal.status_code == 403
        process.terminate()
    assert token.startswith("token: dq_")
    assert warning.startswith("\x1b[31mopen to every program")
