"""Every console block of the documentation runs, and prints what the page says it prints.

The blocks of a page run in order, in one shell and an empty folder. A line that begins with `$` is
a command, and the lines after it are its output, with remarks and errors after the data. Times and
numbers that differ from run to run are not compared.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, name_of

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "the end of a command"

# What differs from run to run, and what stands for it.
_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "INSTANT"),
    (re.compile(r"\bin [\d.]+ (days|h|min|s|ms)\b"), "AHEAD"),
    (re.compile(r"\b[\d.]+ (days|h|min|s|ms) ago\b"), "AGO"),
    (re.compile(r"\b\d{13}\.\d+\b"), "ID"),
    (re.compile(r"\([\d,]+/s\)"), "(RATE)"),
    (re.compile(r" +"), " "),
)


def commands_of(page: Path) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in _BLOCK.findall(page.read_text("utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


SHOWING = [page for page in PAGES if commands_of(page)]


def test_there_are_such_pages() -> None:
    assert SHOWING


@pytest.mark.parametrize("page", SHOWING, ids=name_of)
def test_every_command_runs(page: Path, tmp_path: Path) -> None:
    commands = commands_of(page)
    # A subshell would forget what `export` does, so the remarks take their way through a file.
    script = "\n".join(
        f"{{ {command}\n}} 2> remarks; status=$?; cat remarks; echo '{_END}'; (exit $status)"
        for command, _ in commands
    )
    ran = subprocess.run(
        ["bash", "-c", script],  # noqa: S607 - wherever it is
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    printed = ran.stdout.split(f"{_END}\n")
    assert len(printed) == len(commands) + 1, ran.stderr
    for (command, expected), output in zip(commands, printed, strict=False):
        shown = output.replace(f"{tmp_path}/", "").replace(_END, "")
        assert [alike(line) for line in shown.splitlines()] == list(map(alike, expected)), command


def environment(folder: Path) -> dict[str, str]:
    ours = {name: each for name, each in os.environ.items() if not name.startswith("DUEQUEUE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return ours | {"PATH": path, "XDG_CONFIG_HOME": str(folder)}


def alike(line: str) -> str:
    """Return a line without what differs from run to run."""
    for pattern, name in _VARIES:
        line = pattern.sub(name, line)
    return line.strip()
