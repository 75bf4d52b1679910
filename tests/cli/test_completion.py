"""Completion scripts, in the shells themselves."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import DueQueue

LINES = {
    "duequeue forec": {"forecast"},
    "duequeue buried ": {"--help", "ls", "purge", "revive"},
    "duequeue buried ls --re": {"--reason"},
    "duequeue ls --state ": {"due", "future", "leased"},
    "duequeue cron run-now --q": {"--queue", "--quiet"},
    "duequeue export --to some": {"some-file"},
    "duequeue import some": {"some-file"},
    "duequeue completion ": {"--help", "bash", "fish", "zsh"},
}

BASH = """
source ./script
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_duequeue
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def script(bare: DueQueue, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The script of a shell, in a folder with a file."""
    (tmp_path / "some-file").touch()
    ran = bare("completion", request.param)
    assert (ran.status, ran.err) == (0, "")
    (tmp_path / "script").write_text(ran.out)
    return str(request.param)


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize("line", LINES)
def test_bash_completes(script: str, line: str, tmp_path: Path) -> None:
    words = line if not line.endswith(" ") else f"{line}''"
    assert shown_by(tmp_path, "bash", "-c", BASH.format(words=words)) == LINES[line]


@pytest.mark.parametrize("script", ["fish"], indirect=True)
@pytest.mark.parametrize("line", LINES)
def test_fish_completes(script: str, line: str, tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed here")
    code = f"source ./script; complete -C '{line}'"
    assert shown_by(tmp_path, "fish", "--no-config", "-c", code) == LINES[line]


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_loads_its_script(script: str, tmp_path: Path) -> None:
    text = (tmp_path / "script").read_text()
    assert text.startswith("autoload -U +X compinit")
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed here")
    assert shown_by(tmp_path, "zsh", "-f", "-c", "source ./script; _duequeue_words buried") == {
        "--help ls revive purge"
    }


def shown_by(folder: Path, *command: str) -> set[str]:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return {line for line in ran.stdout.splitlines() if line}
