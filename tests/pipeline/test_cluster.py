"""The jobs on a real cluster: nothing is lost when an executor is killed."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from duequeue import Queue

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_every_message_arrives_although_an_executor_is_killed() -> None:
    command = [sys.executable, "-m", "examples.cluster", "--messages", "20000"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as demo:
        try:
            output, _ = demo.communicate(timeout=500)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(demo.pid, signal.SIGKILL)  # a cluster that is left has many processes
    assert demo.returncode == 0, output
    assert "created 20,000, delivered 20,000, archived 20,000" in output
    assert "killed an executor: process None" not in output
    assert "killed an executor: process" in output


def test_a_database_that_is_in_use_is_left_alone(postgres_url: str) -> None:
    Queue.open(postgres_url, "orders").close()
    command = [sys.executable, "-m", "examples.cluster", "--url", postgres_url]
    demo = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert demo.returncode == 1
    assert "--url must name an empty database" in demo.stderr
