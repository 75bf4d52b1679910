"""The list of packages that `make sbom` writes is complete."""

import re
import tomllib

from tests.docs.pages import ROOT

FOR_DEVELOPERS = {"dev", "test"}
OURS = {*FOR_DEVELOPERS, "contract"}


def test_a_decision_says_why_each_dependency_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (decision,) = (ROOT / "docs" / "decisions").glob("0008-*.md")
    words = decision.read_text("utf-8").lower()
    extras = [each for name, each in project["optional-dependencies"].items() if name not in OURS]
    named = {re.split(r"[\[><=; ]", each)[0] for each in sum(extras, project["dependencies"])}
    assert {each for each in named if each.lower() not in words} == set()


def test_it_has_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\nsbom:")[2]
    found = re.search(r"'\.\[(.*?)\]'", recipe)
    assert found is not None
    assert set(found[1].split(",")) == set(project["optional-dependencies"]) - FOR_DEVELOPERS
