"""`duequeue pipeline`: jobs on Spark, from the command line."""

import signal
import socket
import subprocess
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from select import select

import psycopg
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from duequeue import History, Queue
from duequeue.cli import main, pipeline
from duequeue.cli.address import URL_VARIABLE
from duequeue.cli.pipeline import archive, replay, report
from duequeue.cli.pipeline.progress_line import ProgressLine
from duequeue.cli.pipeline.running import INTERRUPTED, Running, print_result, reason, run_until_done
from duequeue.cli.stop_requests import Signals
from duequeue.cli.terminal import Terminal
from tests.cli.command import ROOT, command, environment, run
from tests.pipeline.settling import in_archive, in_database, settle
from tests.race.watching import WAITING_FOR_A_LOCK, until_one


@pytest.mark.timeout(300)  # Spark starts twice
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_archive_and_report(spark: SparkSession, url: str, tmp_path: Path) -> None:
    with Queue.open(url, "orders", history=True) as queue:
        settle(queue, "a", "b")
    kept, page = tmp_path / "archive", tmp_path / "report" / "report.html"
    archived = run("pipeline", "archive", "--to", str(kept), "--include-today", url=url)
    assert archived.returncode == 0, archived.stderr
    assert archived.stdout.endswith(f"archived 2 rows of 1 day in {kept}\n")
    assert [key for _, _, key in in_archive(spark, kept)] == ["a", "b"]
    assert in_database(url) == []
    reported = run("pipeline", "report", "--archive", str(kept), "--to", str(page.parent), url=url)
    assert reported.returncode == 0, reported.stderr
    assert reported.stdout.endswith(f"reported on 2 messages: {page}\n")
    assert page.is_file()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_report_to_a_file_system_that_spark_does_not_reach(url: str, tmp_path: Path) -> None:
    refused = run("pipeline", "report", "--to", "nosuch://host/x", url=url, folder=tmp_path)
    assert refused.returncode == 1
    (line,) = [line for line in refused.stderr.splitlines() if line.startswith("duequeue: ")]
    assert "nosuch" in line
    assert not (tmp_path / "nosuch:").exists()


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_second_signal_ends_it_at_once(url: str, tmp_path: Path) -> None:
    with Queue.open(url, "orders", history=True) as queue:
        settle(queue, "a")
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE duequeue_history IN ACCESS EXCLUSIVE MODE")
        process = subprocess.Popen(
            command("pipeline", "archive", "--to", str(tmp_path / "archive"), "--include-today"),
            cwd=ROOT,
            env=environment(url),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with psycopg.connect(url, autocommit=True) as onlooker:
            until_one(onlooker, WAITING_FOR_A_LOCK)
        assert process.stdout is not None
        assert process.stdout.readline() == "starting Spark\n"
        while not select([process.stdout], [], [], 0.5)[0]:
            process.send_signal(signal.SIGINT)
        printed, _ = process.communicate()
    assert printed == "interrupted, but nothing is lost. Run the command again to continue\n"
    assert process.returncode == INTERRUPTED
    assert in_database(url) == ["a"]


@pytest.fixture
def told_to_stop() -> Iterator[Signals]:
    """Signals of which one has come."""
    incoming, outgoing = socket.socketpair()
    with incoming, outgoing:
        outgoing.send(b"!")
        yield Signals(incoming)


@pytest.fixture
def running(spark: SparkSession) -> Iterator[Running]:
    """A job on the session of all tests."""
    yield Running(spark, ProgressLine(Terminal()))
    spark.sparkContext.setLogLevel("ERROR")


def parsed(*arguments: str) -> Namespace:
    """Parse the arguments of a job, as the command does."""
    parser = ArgumentParser()
    pipeline.add_arguments(parser)
    return parser.parse_args(arguments)


def test_a_signal_cancels_what_spark_does(running: Running, told_to_stop: Signals) -> None:
    def count_for_ages(job: Running) -> str:
        return str(job.spark.range(10**15).where("id % 7 = 8").count())

    assert run_until_done(running, count_for_ages, told_to_stop) is None


def test_a_signal_ends_a_job_between_two_steps(running: Running, told_to_stop: Signals) -> None:
    def step_for_ages(job: Running) -> str:
        while True:
            job.progress.step("once more")

    assert run_until_done(running, step_for_ages, told_to_stop) is None


def test_a_job_that_ends_in_time_has_ended(running: Running, told_to_stop: Signals) -> None:
    done = run_until_done(running, lambda _: "done", told_to_stop)
    assert done is not None
    assert done.result() == "done"


def test_errors_of_a_job_are_raised(running: Running) -> None:
    def fail(job: Running) -> str:
        raise ValueError("no")

    incoming, outgoing = socket.socketpair()
    with incoming, outgoing:
        done = run_until_done(running, fail, Signals(incoming))
    assert done is not None
    with pytest.raises(ValueError, match="no"):
        done.result()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_report_goes_to_a_url_or_nowhere(
    running: Running, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with Queue.open(url, "orders", history=True) as queue:
        settle(queue, "a")
    to = (tmp_path / "report").as_uri()
    printed = report.run(parsed("report", "--to", to, "--url", url), running)
    assert printed == f"reported on 1 message: {to}/report.html"
    assert (tmp_path / "report" / "report.html").is_file()
    assert list((tmp_path / "here").iterdir()) == []


def test_errors_of_java_are_told_in_one_line(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no.parquet").write_text("this is no Parquet")
    given = Namespace(
        archive=str(tmp_path),
        url=f"sqlite:///{tmp_path}/x.db",
        queue="orders",
        where="true",
        due="now()",
        payload="payload",
        mode="ignore",
        codec="json",
    )
    incoming, outgoing = socket.socketpair()
    with incoming, outgoing:
        done = run_until_done(running, lambda job: replay.run(given, job), Signals(incoming))
    assert done is not None
    assert print_result(done, Terminal()) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no.parquet" in line


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_nothing_to_archive_is_explained(running: Running, url: str, tmp_path: Path) -> None:
    with Queue.open(url, "orders", history=True) as queue:
        settle(queue, "a")
    given = parsed("archive", "--url", url, "--to", str(tmp_path / "archive"))
    told = archive.run(given, running)
    assert "history=True" in told
    assert "--include-today" in told
    assert in_database(url) == ["a"]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_day_that_only_had_to_be_removed_is_told_of(
    running: Running, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Queue.open(url, "orders", history=True) as queue:
        settle(queue, "a")
    given = parsed("archive", "--url", url, "--to", str(tmp_path / "archive"), "--include-today")

    def crash(*_: object) -> None:
        raise RuntimeError("on the way")

    with monkeypatch.context() as patch:
        patch.setattr(History, "remove_rows", crash)
        with pytest.raises(RuntimeError, match="on the way"):
            archive.run(given, running)
    assert archive.run(given, running).startswith("archived 0 rows of 1 day")
    assert in_database(url) == []


def test_progress_is_printed_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter([0.0, 0.0, 0.0, 5.0, 11.0, 11.0, 12.0, 20.0, 20.0])
    progress = ProgressLine(Terminal(), lambda: next(seconds))
    progress.step("copying")
    for done in range(3):
        progress.at("copying", done, 1000)
    progress.step("removing")
    assert capsys.readouterr().out.splitlines() == [
        "copying",
        "copying: 1 of 1,000 parts after 11 s",
        "removing",
    ]


def test_the_reason_is_found_in_what_spark_tells() -> None:
    told = (
        "Job aborted due to stage failure:\n  File …\n"
        "duequeue.errors.StoreUnavailable: PostgreSQL at db: connection refused\n\n\tat java.base"
    )
    assert reason(told) == "PostgreSQL at db: connection refused"
    assert reason("In the worker:\n  File x\nValueError: no JSON: use to_json\n") == (
        "no JSON: use to_json"
    )
    java = "An error occurred.\n: org.apache.spark.SparkException: Bad master\n\tat org.apache"
    assert reason(java) == "Bad master"
    mismatch = PySparkRuntimeError(
        errorClass="PYTHON_VERSION_MISMATCH",
        messageParameters={"worker_version": "3.12", "driver_version": "3.11"},
    )
    lines = "".join(traceback.format_exception_only(mismatch))
    assert reason(f"In the worker:\n  File x\n{lines}") == (
        "the workers have Python 3.12 and the driver has Python 3.11: "
        "set PYSPARK_PYTHON to a Python of the driver's version"
    )
    assert reason("\nNo space left on device\n\tat java.base") == "No space left on device"


def test_without_spark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "duequeue.spark.session", None)
    assert main(["pipeline", "report", "--archive", str(tmp_path), "--to", str(tmp_path)]) == 1
    assert "pip install 'duequeue[spark]'" in capsys.readouterr().err


def test_a_master_that_is_none_is_told_of_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def refuse(master: str, *, config: dict[str, str]) -> None:
        raise RuntimeError(f"An error occurred\n: org.apache.SparkException: {master}?\n\tat x")

    monkeypatch.setattr("duequeue.spark.session.cluster_session", refuse)
    command = ["pipeline", "report", "--archive", str(tmp_path), "--to", str(tmp_path)]
    assert main([*command, "--master", "nonsense"]) == 1
    told = capsys.readouterr().err
    assert told == "duequeue: Spark did not start (nonsense?): check --master and --conf\n"


def test_a_report_on_nothing_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["pipeline", "report", "--to", str(tmp_path)])
    captured = capsys.readouterr()
    assert "give --archive, --url, or both" in captured.err
    assert "starting Spark" not in captured.out


def test_a_missing_url_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["migrate"])
    assert "required: --url; or set DUEQUEUE_URL" in capsys.readouterr().err
