"""No variable of a script has the name of a function, because Lua would then call the variable."""

import re
from pathlib import Path

import pytest

from duequeue.stores.redis import scripts

FOLDER = Path(scripts.__file__).parent
SCRIPTS = sorted(FOLDER.rglob("*.lua"))
FUNCTION = re.compile(r"^local function (\w+)", re.MULTILINE)
VARIABLES = re.compile(r"^\s*(?:local|for) (?!function)([\w, ]+?) *(?:=|$| in )", re.MULTILINE)

FUNCTIONS = {
    name for part in FOLDER.rglob("parts/*.lua") for name in FUNCTION.findall(part.read_text())
}


@pytest.mark.parametrize(
    "script", SCRIPTS, ids=lambda script: script.relative_to(FOLDER).as_posix()
)
def test_no_variable_hides_a_function(script: Path) -> None:
    found = VARIABLES.findall(script.read_text())
    variables = {name.strip() for names in found for name in names.split(",")}
    assert variables & FUNCTIONS == set()


def test_there_are_functions_to_hide() -> None:
    assert {"given_back", "state_of", "wake"} <= FUNCTIONS
