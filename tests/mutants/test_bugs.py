"""Each seeded bug still applies, and the tests that should find it exist."""

import shlex
from collections import Counter

import pytest

from tests.mutants.bug import Bug
from tests.mutants.bugs import BUGS
from tests.mutants.trial import ROOT


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_applies_to_the_source_of_today(bug: Bug) -> None:
    wrong = bug.applied_to((ROOT / bug.path).read_text("utf-8"))
    if bug.path.endswith(".py"):
        compile(wrong, bug.path, "exec")
    missing = [name for name in shlex.split(bug.tests) if name.endswith(".py")]
    assert [name for name in missing if not (ROOT / name).exists()] == []


def test_names_are_unique() -> None:
    assert max(Counter(bug.name for bug in BUGS).values()) == 1
