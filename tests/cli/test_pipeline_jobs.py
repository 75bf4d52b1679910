"""`duequeue pipeline ingest` and `deliver`, and arguments that make no sense."""

import subprocess
from pathlib import Path
from signal import SIGINT
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from duequeue import Queue
from tests.cli.command import ROOT, command, environment, run
from tests.cli.conftest import DueQueue
from tests.spark.frames import PAST


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'queue.db'}"


def test_ingest_tells_what_it_did(file_url: str, tmp_path: Path) -> None:
    source = tmp_path / "orders.csv"
    source.write_text("id,due_at,amount\na,2020-01-01,5\nb,2020-01-01,6\n,2020-01-01,7\n")
    finished = run(
        *("pipeline", "ingest", str(source), "--queue", "orders", "--key", "id"),
        *("--option", "inferSchema=true", "--rejects", str(tmp_path / "rejects")),
        url=file_url,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[0] == "starting Spark"
    assert "3 rows: 2 created, 0 updated, 0 ignored\n1 rejected, in " in finished.stdout
    assert finished.stdout.endswith("  id is null: 1\n")
    with Queue[Any].open(file_url, "orders") as queue:
        assert {each.payload["amount"] for each in queue.try_poll_many(9)} == {5, 6}


def test_what_is_no_sql_is_told_in_one_line(file_url: str, tmp_path: Path) -> None:
    table = pa.table({"key": ["a"], "payload": ["1"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    finished = run(
        *("pipeline", "replay", str(tmp_path), "--queue", "orders", "--where", "kee = 'a'"),
        url=file_url,
    )
    assert finished.returncode == 1
    told = [line for line in finished.stderr.splitlines() if not line.startswith("WARNING: ")]
    assert len(told) == 1, "Java's own warnings aside"
    assert "where is not valid SQL over the archive's columns" in told[0]


def test_deliver_ends_well_on_ctrl_c(file_url: str, tmp_path: Path) -> None:
    with Queue[Any].open(file_url, "orders") as queue:
        queue.offer("a", 1, PAST)
        arguments = ["--queue", "orders", "--checkpoint", str(tmp_path / "checkpoint")]
        arguments += ["--to-queue", "doubles", "--forever", "--master", "local[2]"]
        with subprocess.Popen(
            command("pipeline", "deliver", "tests.cli.pipeline_handlers:twice", *arguments),
            cwd=ROOT,
            env=environment(file_url),
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            with Queue[Any].open(file_url, "doubles") as doubles:
                found = doubles.poll()
                assert found is not None
                assert (found.key, found.payload) == ("a", 2)
            process.send_signal(SIGINT)
            assert process.stdout is not None
            assert process.stdout.read().endswith(
                "nothing is lost. Run the command again to continue\n"
            )
        assert process.returncode == 130


DELIVER = ("deliver", "math:fsum", "--queue", "q", "--checkpoint", "c")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("ingest", "x.csv", "--queue", "q", "--conf", "nonsense"),
            "does not have the form NAME=VALUE",
        ),
        (("deliver", "m:f", "--queue", "q"), "--checkpoint"),
        (("deliver", "nowhere", "--queue", "q", "--checkpoint", "c"), "as module:function"),
        (("migrate", "--queue", "q", "--checkpoint", "c"), "--to"),
        (("archive", "--to", "x", "--url", "memory:"), "which other processes cannot reach"),
        (("replay", "x", "--queue", "q", "--url", "secret"), "url names no store"),
        (("migrate", "--queue", "q", "--checkpoint", "c", "--to", "nosuch:"), "--to: url"),
        (
            (*DELIVER, "--to-queue", "r", "--to-url", "nosuch:"),
            "--to-url: url",
        ),
        ((*DELIVER, "--to-url", "sqlite:///x.db"), "needs --to-queue"),
        (("archive", "--to", "x", "--url", ""), "url names no store"),
    ],
)
def test_wrong_arguments_start_no_spark(
    bare: DueQueue, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.setenv("DUEQUEUE_URL", "postgresql://me:secret@localhost/app")
    ran = bare("pipeline", *arguments)
    assert ran.status in {1, 2}
    assert words in ran.err
    assert "starting Spark" not in ran.out
    assert "secret" not in ran.out + ran.err
