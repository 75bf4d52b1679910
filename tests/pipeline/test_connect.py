"""The connector and every job on a real server of Spark Connect."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT, run
from tests.fixtures.spark_connect import connect_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that the tests of this module share."""
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.mark.timeout(300)
def test_every_job_runs_on_spark_connect(server: str, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("key,due_at,n\na,2020-01-01 00:00:00,1\nb,never,2\nc,2020-01-01 00:00:00,3\n")
    url, rejects = f"sqlite:///{tmp_path}/queue.db", str(tmp_path / "rejects")
    ingest = ("pipeline", "ingest", str(source), "--queue", "orders", "--rejects", rejects)
    ingested = run(*ingest, "--master", server, url=url)
    assert "Traceback" not in ingested.stderr, ingested.stderr
    assert "2 created" in ingested.stdout
    assert "due_at is not a time: 1" in ingested.stdout

    finished = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.connect_client", server, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "Traceback" not in finished.stderr, finished.stderr
    found = json.loads(finished.stdout)
    progress = found.pop("progress")
    assert "is not the same folder on the server of Spark Connect" in found.pop("not shared")
    assert found == {
        "delivered": [2, 0, 0],
        "results": ['"a"', '"c"'],
        "archived": 2,
        "files": [".json", ".parquet"],
        "reported": 2,
        "replayed": [2, 0, 0],
        "moved": [2, 0],
        "read": [["a", '{"attempts":1}'], ["c", '{"attempts":1}']],
        "left": False,
    }
    assert "counting True" in progress, "the server's own reports arrive"
