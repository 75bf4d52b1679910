"""The reference of the command line names every command and every argument."""

import re

import pytest

from duequeue.cli.completing import Words, words_by_command
from tests.docs.pages import DOCS

REFERENCE = (DOCS / "reference" / "cli.md").read_text("utf-8")
NAMED = set(re.findall(r"--[a-z-]+", REFERENCE))
COMMANDS = [each for each in words_by_command() if each.place and "--" not in each.place]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.place)
def test_the_reference_names_it(command: Words) -> None:
    name = command.place.split()[-1]
    in_code = re.compile(rf"(`[^`\n]*|^duequeue .*)\b{re.escape(name)}\b", re.MULTILINE)
    assert in_code.search(REFERENCE), f"{name} is missing"
    assert {word for word in command.words if word.startswith("--")} - NAMED == set()
