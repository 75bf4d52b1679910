"""The jobs on a real cluster: nothing is lost when an executor is killed."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from duequeue.cli.address import URL_VARIABLE

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_every_message_arrives_although_an_executor_is_killed(postgres_url: str) -> None:
    command = [sys.executable, "-m", "examples.cluster", "--messages", "20000"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, URL_VARIABLE: postgres_url},
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
