"""Spark sessions with a quiet log, on this machine, on a cluster or on Spark Connect."""

import os
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from duequeue.spark.programs import find_java, quiet_programs

CONNECT = "sc://"
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# Unix sockets are faster between Spark and its Python workers, but some systems lack them.
_SOCKETS = {"spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower()}
_LOG = Path(__file__).with_name("log4j2.properties").as_uri()
_OF_THE_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
}
_OF_SPARK = {
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG}",
    "spark.ui.enabled": "false",
}


# With this many shuffle partitions for each core, a partition fits into a core's share of the
# memory. Spark joins small partitions, but only after its default of 200 has cost seconds.
_PARTITIONS_PER_CORE = 4


def local_session(
    name: str = "duequeue",
    *,
    cores: str = "*",
    memory: str = "1g",
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session on this machine, with this Python and that many cores.

    Workers import modules from the same folders as this program, unless it has started Java before.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    own = {"spark.driver.memory": memory, **shuffling(cores)}
    settings = {**_LOOPBACK, **_SOCKETS, **own, **(config or {})}
    with quiet_programs():
        return _session(name, f"local[{cores}]", settings)


def cluster_session(
    master: str, name: str = "duequeue", *, config: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session on a cluster, whose machines need the same Python with this package.

    A master such as sc://host:15002 is a server of Spark Connect, which starts no Java here.
    """
    if master.startswith(CONNECT):
        return _connect_session(name, master, config or {})
    return _session(name, master, config or {})


def shuffling(cores: str) -> dict[str, str]:
    """Return the settings of shuffles for a number of cores; * means all cores."""
    found = re.match(r"\d+", cores)
    number = int(found[0]) if found else os.cpu_count() or 1
    return {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": str(_PARTITIONS_PER_CORE * number),
    }


def _session(name: str, master: str, config: Mapping[str, str]) -> SparkSession:
    find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    bar = {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    for key, value in {**_OF_THE_SESSION, **_OF_SPARK, **bar, **config}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _connect_session(name: str, address: str, config: Mapping[str, str]) -> SparkSession:
    """Connect to a server; only the settings of the session can be changed from here."""
    builder = SparkSession.builder.remote(address).appName(name)
    for key, value in {**_OF_THE_SESSION, **config}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is a client of Spark Connect, which has no Java in its process."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def interrupt(spark: SparkSession) -> None:
    """Cancel the work that Spark does for this session, without logging every cancelled part."""
    if is_connect(spark):
        spark.interruptAll()
    else:
        spark.sparkContext.setLogLevel("OFF")
        spark.sparkContext.cancelAllJobs()


def activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread, where Spark looks for sources to write to."""
    if not is_connect(spark):
        java: Any = spark
        java._jvm.SparkSession.setActiveSession(java._jsparkSession)  # noqa: SLF001 - Spark does the same
