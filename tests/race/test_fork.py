"""A process that forks with an open queue: the copy says so, and neither spoils the other's."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.race.together import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("what", ["sync", "outlive", "async", "history", "cron", "async cron"])
def test_a_fork_needs_a_queue_of_its_own(what: str, store_url: str) -> None:
    command = [sys.executable, "-m", "tests.race.forking", what, store_url]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ran.returncode == 0, ran.stderr
