"""A folder on any file system that Spark reaches: local, shared, HDFS."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_PATTERN = re.compile(r"[*?\[\]{}]")  # Spark would look for everything that matches
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)


class Folder:
    """Names are relative to the folder, with slashes."""

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        given = str(path)
        if not given or _PATTERN.search(given):
            raise ValueError(f"folder must be a path without any of * ? [ ] {{ }}, not {given!r}")
        self.path = absolute_path(given)
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001 - the only way to the file systems of Spark
        self._files = self._at("").getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        self._local = self._files.getScheme() == "file"

    def of(self, name: str) -> str:
        """Return the whole path of a name."""
        return f"{self.path}/{name}" if name else self.path

    def names(self, name: str = "") -> list[str]:
        """List what lies there, sorted; nothing if there is no such folder."""
        if not self.has(name):
            return []
        return sorted(each.getPath().getName() for each in self._files.listStatus(self._at(name)))

    def has(self, name: str) -> bool:
        """Tell whether there is such a file or folder."""
        return bool(self._files.exists(self._at(name)))

    def read(self, name: str) -> bytes:
        """Read a small file."""
        stream = self._files.open(self._at(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a new small file, which is there as a whole or not at all."""
        half = f"{name}.half"
        stream = self._files.create(self._at(half), True)  # noqa: FBT003 - Java knows no keywords
        try:
            stream.write(content)
        finally:
            stream.close()
        self.keep(half)
        self.move(half, name)

    def move(self, name: str, to: str) -> None:
        """Move a file at once, and see to it that its place outlives a loss of power."""
        target = self._at(to)
        self._files.mkdirs(target.getParent())
        if not self._files.rename(self._at(name), target):
            raise OSError(f"{self.of(name)} could not be moved to {self.of(to)}")
        if self._local:
            written = self._here(to)
            for each in (written, written.parent, written.parent.parent):
                _to_disk(each)

    def keep(self, name: str) -> None:
        """See to it that a file, or a folder with all that is in it, outlives a loss of power.

        Other file systems than the local one do that by themselves.
        """
        if self._local:
            kept = self._here(name)
            for each in (*kept.rglob("*"), kept, kept.parent):
                _to_disk(each)

    def delete(self, name: str) -> None:
        """Delete a folder with all that is in it, if it is there."""
        self._files.delete(self._at(name), True)  # noqa: FBT003 - Java knows no keywords

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others out for as long as the block lasts, where the file system can do that."""
        if not self._local:
            yield
            return
        self._files.mkdirs(self._at(""))
        _to_disk(self._here("").parent)
        with self._here("_lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"folder {self.path} is being archived into by another process: "
                    "wait until it is done, or name another folder"
                ) from None
            yield

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.of(name))

    def _here(self, name: str) -> Path:
        """Return where a name lies on this machine."""
        return Path(self._at(name).toUri().getPath())


def absolute_path(given: str) -> str:
    """Return the path for Java, whose working folder is that of its start."""
    return given.rstrip("/") if _SCHEME.match(given) else str(Path(given).absolute())


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
