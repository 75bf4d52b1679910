"""Type checkers accept every Python block of the documentation, and infer the public types."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.docs.pages import ROOT, RUNNABLE, name_of, program_of

PUBLIC_TYPES = Path(__file__).with_name("public_types.py")
BIN = Path(sys.executable).parent

Command: TypeAlias = list[str | Path]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """Write each page as a program, and return which page each file is."""
    folder = tmp_path_factory.mktemp("pages")
    names = {folder / f"{_module_of(page)}.py": name_of(page) for page in RUNNABLE}
    for program, page in names.items():
        program.write_text(program_of((ROOT / page).read_text("utf-8")), "utf-8")
    return names


def _module_of(page: Path) -> str:
    return "page_" + name_of(page).removesuffix(".md").replace("/", "_").replace("-", "_")


def test_mypy(programs: dict[Path, str]) -> None:
    command: Command = [
        *(BIN / "mypy", "--config-file=", "--no-error-summary", "--check-untyped-defs"),
        *("--strict", "--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls"),
        "--disable-error-code=import-untyped",  # asyncpg ships no types
        f"--cache-dir={ROOT / '.mypy_cache' / 'documentation'}",
        *programs,
        PUBLIC_TYPES,
    ]
    assert errors_of(command, programs, MYPYPATH=f"{ROOT / 'src'}") == ""


def test_pyright(programs: dict[Path, str], tmp_path: Path) -> None:
    settings = tmp_path / "pyrightconfig.json"
    checked = [str(program) for program in [*programs, PUBLIC_TYPES]]
    # By default it excludes hidden folders, and the temporary folder may be in one.
    options = {"include": checked, "exclude": [], "typeCheckingMode": "standard"}
    settings.write_text(json.dumps(options))
    command: Command = [BIN / "basedpyright", "--project", settings, "--pythonpath", sys.executable]
    # It asks Python for its path, and so sees the package as users have it, and not as its own.
    assert errors_of(command, programs, PYTHONPATH=f"{ROOT / 'src'}") == ""


def errors_of(command: Command, programs: dict[Path, str], **environment: str) -> str:
    """Return what a type checker reports, with the pages in place of their programs."""
    checker = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if checker.returncode == 0:
        return ""
    report = (checker.stdout + checker.stderr).replace(f"{ROOT}{os.sep}", "")
    for program, page in programs.items():
        report = report.replace(str(program), page)
    return report or f"{command[0]} ended with {checker.returncode}"
