"""Every `curl` of the documentation is run, and the worker in JavaScript too."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT
from tests.fixtures.node import node
from tests.server.command import ServeProcess, serving

SERVER = "http://127.0.0.1:8080"
PAGES = [DOCS / "guides" / "http-api.md", DOCS / "guides" / "server.md", ROOT / "README.md"]
# An answer that is an error ends the script.
PRELUDE = (
    'set -eu -o pipefail\ncurl() { command curl --fail-with-body --silent --show-error "$@"; }\n'
)

_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SCRIPT = re.compile(r"^```js\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def dev_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    with serving("--dev", folder=tmp_path_factory.mktemp("dev")) as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, dev_server: ServeProcess) -> Path:
    """The home folder of a user whose server at the usual port has a token."""
    home = tmp_path_factory.mktemp("home")
    file = home / ".local" / "state" / "duequeue" / "token-8080"
    file.parent.mkdir(parents=True)
    file.write_text(dev_server.read_token())
    return home


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_curl_works(page: Path, dev_server: ServeProcess, home: Path) -> None:
    found = [block for block in _SHELL.findall(page.read_text("utf-8")) if SERVER in block]
    commands = [block for block in found if "curl" in block]
    assert commands
    script = PRELUDE + "\n".join(commands).replace(SERVER, dev_server.url)
    ended = subprocess.run(
        ["bash", "-c", script],  # noqa: S607 - wherever it is
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_worker_in_javascript_works(dev_server: ServeProcess, tmp_path: Path) -> None:
    (script,) = _SCRIPT.findall(PAGES[0].read_text("utf-8"))
    worker = tmp_path / "worker.mjs"
    worker.write_text(script.replace("wait: 20", "wait: 0.1"))
    with dev_server.client() as http:
        messages = [{"key": f"mail-{n}", "payload": n} for n in range(3)]
        http.post("/v1/queues/mails/messages", json=messages)
        ended = subprocess.run(
            [node(), worker],
            env={**os.environ, "DUEQUEUE_SERVER": dev_server.url, "ONCE": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.stdout.splitlines() == [f"handled mail-{n} {n}" for n in range(3)], (
            ended.stderr
        )
        assert http.get("/v1/queues/mails").json()["total"] == 0
