"""No variable of a script has the name of a function, because Lua would then call the variable."""

import re
from importlib.resources import files

import pytest

from duequeue.stores.redis.scripts import sections

FOLDERS = ("duequeue.stores.redis.scripts", "duequeue.bulk")
FUNCTION = re.compile(r"^local function (\w+)", re.MULTILINE)
VARIABLES = re.compile(r"^\s*(?:local|for) (?!function)([\w, ]+?) *(?:=|$| in )", re.MULTILINE)

SECTIONS = {
    section: text
    for folder in FOLDERS
    for file in files(folder).iterdir()
    if file.name.endswith(".lua")
    for section, text in sections(file.read_text("utf-8")).items()
}
FUNCTIONS = {
    name
    for (what, _), text in SECTIONS.items()
    if what == "part"
    for name in FUNCTION.findall(text)
}


@pytest.mark.parametrize("section", SECTIONS, ids=" ".join)
def test_no_variable_hides_a_function(section: tuple[str, str]) -> None:
    found = VARIABLES.findall(SECTIONS[section])
    variables = {name.strip() for names in found for name in names.split(",")}
    assert variables & FUNCTIONS == set()


def test_there_are_functions_to_hide() -> None:
    assert {"given_back", "state_of", "wake"} <= FUNCTIONS


def test_no_name_is_taken_twice() -> None:
    texts = [
        file.read_text("utf-8")
        for folder in FOLDERS
        for file in files(folder).iterdir()
        if file.name.endswith(".lua")
    ]
    named = re.findall(r"^-- (?:script|part): .*$", "\n".join(texts), re.MULTILINE)
    assert len(named) == len(set(named)) == len(SECTIONS)
