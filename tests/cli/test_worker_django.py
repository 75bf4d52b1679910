"""`duequeue worker` sets Django up, and closes connections around each call of a handler."""

import os
import subprocess
import sys
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from duequeue import Message, Queue
from tests.cli.command import ROOT, Worker, environment, run

PROJECT = "tests.cli.django_shop"


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """The environment of a project with a database."""
    found = {
        "DJANGO_SETTINGS_MODULE": f"{PROJECT}.settings",
        "SHOP_FILE": str(tmp_path / "shop.db"),
    }
    migrate = [sys.executable, "-m", "django", "migrate", "--verbosity=0"]
    subprocess.run(migrate, cwd=ROOT, env=environment(None) | found, check=True)
    return found


@pytest.mark.parametrize("handler", ["handle", "handle_async"])
@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_handlers_of_django(
    url: str, orders: Queue[Any], variables: dict[str, str], handler: str, processes: str
) -> None:
    orders.offer_batch([Message(key, 1) for key in "abc"])
    arguments = ("--queue=orders", "--concurrency=1", f"--processes={processes}", "--url", url)
    with Worker(f"{PROJECT}.handlers:{handler}", None, *arguments, **variables) as worker:
        saved = worker.await_lines("saved", 3)
        worker.send(SIGTERM)
        status, printed = worker.end()
    assert status == 0, printed
    assert [words[2] for words in saved] == ["closed"] * 3
    assert sorted(words[3] for words in saved) == ["1", "2", "3"]


def test_without_its_settings_django_is_left_alone() -> None:
    assert "DJANGO_SETTINGS_MODULE" not in os.environ
    ran = run("worker", f"{PROJECT}.handlers:handle", "--queue=orders", url="memory:")
    assert ran.returncode == 1
    assert "ImproperlyConfigured" in ran.stderr
