"""A folder on any file system that Spark can reach, such as a local disk or HDFS."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_PATTERN = re.compile(r"[*?\[\]{}]")  # Spark would look for everything that matches
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


class Folder:
    """A folder whose files are read, written and moved by name; names are relative to it."""

    def __init__(self, spark: SparkSession, path: str | Path, argument: str = "folder") -> None:
        given = str(path)
        if not given or _PATTERN.search(given):
            raise ValueError(
                f"{argument} must be a path without any of * ? [ ] {{ }}, not {given!r}"
            )
        self.path = absolute_path(given)
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001 - the only way to the file systems of Spark
        try:
            self._files = self._at("").getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
            self.has("")  # a server that does not answer is reported now, not after the work
        except (Py4JJavaError, PySparkException) as error:
            raise ValueError(
                f"{argument} cannot be reached from Spark ({_reason(error)}): give a local path, "
                "or the URL of a file system that Spark is set up for"
            ) from error
        self._local = self._files.getScheme() == "file"

    def of(self, name: str) -> str:
        """Return the whole path of a name."""
        return f"{self.path}/{name}" if name else self.path

    def names(self, name: str = "") -> list[str]:
        """List what a folder contains, sorted; return [] if there is no such folder."""
        if not self.has(name):
            return []
        return sorted(each.getPath().getName() for each in self._files.listStatus(self._at(name)))

    def has(self, name: str) -> bool:
        """Return whether there is such a file or folder."""
        return bool(self._files.exists(self._at(name)))

    def sizes(self, name: str) -> dict[str, int]:
        """Return the sizes of the files in a folder, in bytes."""
        found = self._files.listStatus(self._at(name))
        return {each.getPath().getName(): int(each.getLen()) for each in found}

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
        stream = self._files.create(self._at(half), True)  # noqa: FBT003 - Java has no keyword arguments
        try:
            stream.write(content)
        finally:
            stream.close()
        self.keep(half)
        self.move(half, name)

    @contextmanager
    def written_locally(self) -> Iterator[Path]:
        """Yield a folder on this machine; the files that the block writes there end up in this one.

        They replace earlier files of the same names.
        """
        if self._local:
            yield self._here("")
            return
        with TemporaryDirectory(prefix="duequeue-") as name:
            yield Path(name)
            for file in Path(name).rglob("*"):
                if file.is_file():
                    self._upload(file, file.relative_to(name).as_posix())

    def move(self, name: str, to: str) -> None:
        """Move a file in one step, and make sure that its new place survives a power failure."""
        target = self._at(to)
        self._files.mkdirs(target.getParent())
        if not self._files.rename(self._at(name), target):
            raise OSError(f"{self.of(name)} could not be moved to {self.of(to)}")
        if self._local:
            written = self._here(to)
            for each in (written, written.parent, written.parent.parent):
                _to_disk(each)

    def keep(self, name: str) -> None:
        """Make sure that a file, or a folder with all its contents, survives a power failure.

        Only a local file system needs this; the others do it by themselves.
        """
        if self._local:
            kept = self._here(name)
            for each in (*kept.rglob("*"), kept, kept.parent):
                _to_disk(each)

    def delete(self, name: str) -> None:
        """Delete a folder with all its contents, if it exists."""
        self._files.delete(self._at(name), True)  # noqa: FBT003 - Java has no keyword arguments

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out during the block, on file systems that can lock a file."""
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
                    f"another process is archiving into folder {self.path}: "
                    "wait until it is done, or name another folder"
                ) from None
            yield

    @contextmanager
    def being_read(self) -> Iterator[None]:
        """Keep files from being replaced or removed during the block, where that is possible."""
        with self._opened() as opened:
            if opened is not None:
                fcntl.flock(opened, fcntl.LOCK_SH)
            yield

    @contextmanager
    def unread(self) -> Iterator[bool]:
        """Yield whether nobody reads the folder, and keep readers waiting during the block."""
        with self._opened() as opened:
            try:
                if opened is not None:
                    fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        """Open the folder itself, which can be locked without a file that readers cannot make."""
        if not self._local:
            yield None
            return
        opened = os.open(self._here(""), os.O_RDONLY)
        try:
            yield opened
        finally:
            os.close(opened)

    def _upload(self, file: Path, name: str) -> None:
        source = self._jvm.org.apache.hadoop.fs.Path(file.as_uri())
        self._files.mkdirs(self._at(name).getParent())
        delete_source, overwrite = False, True
        self._files.copyFromLocalFile(delete_source, overwrite, source, self._at(name))

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.of(name))

    def _here(self, name: str) -> Path:
        """Return where a name is on this machine."""
        return Path(self._at(name).toUri().getPath())


def is_url(path: str | Path) -> bool:
    """Return whether a path names its file system, such as hdfs://host/folder or file:///folder."""
    return _URL.match(str(path)) is not None


def absolute_path(given: str) -> str:
    """Return a path that Java can use, which may have been started in another folder."""
    return given.rstrip("/") if is_url(given) else str(Path(given).absolute())


def _reason(error: Py4JJavaError | PySparkException) -> str:
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getMessage())
    return str(error)


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
