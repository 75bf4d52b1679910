"""A store of another package: its URL is known once it is installed, and the contract judges it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from duequeue import Queue
from duequeue.backends import backend_for

INSTALLED = Path(__file__).with_name("installed")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the package installed in this process."""
    monkeypatch.syspath_prepend(INSTALLED)


def judge(folder: Path, *arguments: str, module: str = "duequeue.contract") -> str:
    """Run part of the contract as an author would, and return what pytest printed."""
    path = os.pathsep.join([str(INSTALLED), *filter(None, [os.environ.get("PYTHONPATH")])])
    quietly = ["-q", "-p", "no:xdist"]
    finished = subprocess.run(
        [sys.executable, "-m", module, *quietly, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return (finished.stdout + finished.stderr).strip()


def test_a_queue_opens_on_the_store_of_an_installed_package(installed: None) -> None:
    with Queue.open("outside:shop", "orders") as producer:
        producer.offer("a", 1)
        with Queue.open("OUTSIDE:shop", "orders") as consumer:
            assert consumer.contains("a")


def test_a_scheme_that_no_package_brings_stays_unknown() -> None:
    with pytest.raises(
        ValueError, match="'outsider', which names no store; the known schemes are: memory:"
    ):
        backend_for("outsider:shop")


def test_a_store_that_keeps_the_contract_passes(tmp_path: Path) -> None:
    part = ["-k", "test_offer or test_closing or test_cron_port"]
    printed = judge(tmp_path, *part, "--url", "outside:{unique}", "--one-process")
    last = printed.splitlines()[-1]
    assert " passed, 2 skipped, " in last
    assert "failed" not in last
    assert "error" not in last


def test_a_store_that_breaks_the_contract_fails(tmp_path: Path) -> None:
    part = ["-k", "test_read_and_stats and drop"]
    printed = judge(tmp_path, *part, "--url", "careless:{unique}", "--one-process")
    assert " failed" in printed.splitlines()[-1]


@pytest.mark.parametrize("options", [[], ["--url", "outside:shop"]])
def test_without_a_store_for_each_test_nothing_is_judged(
    tmp_path: Path, options: list[str]
) -> None:
    # The plugin refuses it, so a test of one line shows it sooner than all those of the contract.
    (tmp_path / "test_one.py").write_text("def test_one(store_url: str) -> None: ...\n")
    plugins = ("--disable-plugin-autoload", "-p", "duequeue.contract.plugin")
    printed = judge(tmp_path, *plugins, *options, module="pytest")
    assert "name the store with --url, and write {unique}" in printed
    assert " passed" not in printed
