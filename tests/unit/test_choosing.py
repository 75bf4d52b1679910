"""`make test ONLY=…` runs a part of the tests, and refuses to run none."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.choosing import CONTRACT, ROOT, Choice, stores_of
from tests.fixtures.redis_server import RedisServer


def test_what_is_misspelt_is_refused_with_what_there_is() -> None:
    with pytest.raises(pytest.UsageError, match=r"'redsi' is neither.*\(memory, .*\(.*, cli, "):
        Choice.of("redsi")


def test_no_name_chooses_everything() -> None:
    nothing = Choice.of("")
    assert nothing.has({"redis"})
    assert nothing.has(set())
    assert not nothing.leaves_out(ROOT / "tests" / "cli")


def test_folders_are_chosen_by_name() -> None:
    choice = Choice.of("cli, contract")
    assert not choice.leaves_out(ROOT / "tests" / "cli" / "test_errors.py")
    assert not choice.leaves_out(CONTRACT)
    assert choice.leaves_out(ROOT / "tests" / "spark" / "test_sql.py")
    assert not choice.leaves_out(ROOT / "tests"), "the chosen folders are in it"


def test_stores_are_chosen_in_every_folder_or_in_one() -> None:
    assert Choice.of("redis").has({"redis", "memory"})
    assert not Choice.of("redis").has({"sqlite"})
    assert not Choice.of("redis").has(set())
    assert not Choice.of("redis").leaves_out(CONTRACT)
    both = Choice.of("contract redis")
    assert both == Choice(frozenset({"redis"}), frozenset({"contract"}))


@pytest.mark.parametrize("face", ["sqlite-sync"])
def test_a_test_says_by_its_parameters_which_store_it_needs(
    request: pytest.FixtureRequest, face: str
) -> None:
    assert stores_of(request.node) == {"sqlite"}


@pytest.mark.parametrize("server", ["frail_mariadb"])
def test_a_parameter_may_name_the_fixture_of_a_server(
    request: pytest.FixtureRequest, server: str
) -> None:
    assert stores_of(request.node) == {"mariadb"}


def test_a_fixture_says_it_too(request: pytest.FixtureRequest, redis_server: RedisServer) -> None:
    assert stores_of(request.node) == {"redis"}


def test_most_tests_need_no_store(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    assert stores_of(request.node) == set()


def test_make_refuses_a_name_before_it_downloads_anything() -> None:
    make = ["make", "--dry-run", "--always-make", "test", "ONLY=redsi"]
    said = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    checking, downloading = "-m tests.fixtures.choosing 'redsi'", "-m tests.fixtures.downloads"
    assert said.index(checking) < said.index(downloading)
    refused = subprocess.run(
        [sys.executable, *checking.replace("'", "").split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "'redsi' is neither a store" in refused.stderr
