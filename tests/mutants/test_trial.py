"""What the runner says of a bug, shown on a project of one line."""

import re
from pathlib import Path

import pytest

from tests.mutants.bug import Bug
from tests.mutants.trial import Result, Trial

SOUND = "def double(number: int) -> int:\n    return 2 * number\n"
TESTS = """
from duequeue.numbers import double


def test_zero() -> None:
    assert double(0) == 0


def test_two() -> None:
    assert double(2) == 4


def test_three() -> None:
    assert double(3) == 7
"""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    root = tmp_path_factory.mktemp("project")
    package, tests = root / "src" / "duequeue", root / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").touch()
    (package / "numbers.py").write_text(SOUND)
    (tests / "test_numbers.py").write_text(TESTS)
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return Trial(tmp_path_factory.mktemp("copy"), root)


def bug(old: str, new: str, chosen: str) -> Bug:
    return Bug("a bug", "numbers.py", old, new, f"tests/test_numbers.py -k '{chosen}'")


@pytest.mark.parametrize(
    ("wrong", "result", "about"),
    [
        (bug("2 *", "3 *", "two"), Result.CAUGHT, "test_two"),
        (bug("2 *", "3 *", "zero"), Result.MISSED, ""),
        (bug("2 *", "3 *", "three"), Result.UNSOUND, "without the bug, too: .*test_three"),
        (bug("number", "figure", "zero"), Result.STALE, "numbers.py has this 2 times"),
    ],
    ids=["caught", "missed", "fails anyway", "stale"],
)
def test_a_verdict(trial: Trial, wrong: Bug, result: Result, about: str) -> None:
    found, said = trial.judge(wrong)
    assert found is result
    assert re.search(about, said)


def test_the_tests_of_a_bug_import_the_copy(tmp_path: Path) -> None:
    assert Trial(tmp_path).imported_from() == tmp_path / "src" / "duequeue"
