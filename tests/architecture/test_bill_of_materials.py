"""The list of packages that `make sbom` writes is complete."""

import re
import tomllib

from tests.docs.pages import ROOT

FOR_DEVELOPERS = {"dev", "test"}


def test_it_has_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\nsbom:")[2]
    found = re.search(r"'\.\[(.*?)\]'", recipe)
    assert found is not None
    assert set(found[1].split(",")) == set(project["optional-dependencies"]) - FOR_DEVELOPERS
