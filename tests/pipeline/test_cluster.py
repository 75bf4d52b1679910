"""The jobs on a real cluster: nothing is lost when an executor is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_every_message_arrives_although_an_executor_is_killed() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "examples.cluster", "--messages", "20000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "created 20,000, delivered 20,000, archived 20,000" in finished.stdout
    assert "killed an executor: process None" not in finished.stdout
    assert "killed an executor: process" in finished.stdout
