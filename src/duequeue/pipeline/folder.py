"""A folder on any file system that Spark can reach, such as a local disk or HDFS."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from duequeue.errors import InvalidArgument
from duequeue.pipeline.file_systems import Files, open_files
from duequeue.spark.session import is_connect

_PATTERN = re.compile(r"[*?\[\]{}]")  # Spark would look for everything that matches
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


class Folder:
    """A folder whose files are read, written and moved by name; names are relative to it."""

    def __init__(self, spark: SparkSession, path: str | Path, argument: str = "folder") -> None:
        given = str(path)
        if not given or _PATTERN.search(given):
            raise InvalidArgument(
                argument, f"must be a path without any of * ? [ ] {{ }}, not {given!r}"
            )
        self.path = absolute_path(given)
        self._spark = spark
        self._argument = argument
        if not is_connect(spark):  # on Connect, only Spark may reach the file system
            _ = self._files

    @cached_property
    def _files(self) -> Files:
        try:
            return open_files(self._spark, self.path)
        except OSError as error:
            raise InvalidArgument(
                self._argument,
                f"cannot be reached from Spark ({error}): give a local path, "
                "or the URL of a file system that Spark is set up for",
            ) from error

    def of(self, name: str) -> str:
        """Return the whole path of a name."""
        return f"{self.path}/{name}" if name else self.path

    def names(self, name: str = "") -> list[str]:
        """List what a folder contains, sorted; return [] if there is no such folder."""
        return sorted(self._files.names(name)) if self.has(name) else []

    def has(self, name: str) -> bool:
        """Return whether there is such a file or folder."""
        return self._files.has(name)

    def sizes(self, name: str) -> dict[str, int]:
        """Return the sizes of the files in a folder, in bytes."""
        return self._files.sizes(name)

    def read(self, name: str) -> bytes:
        """Read a small file."""
        return self._files.read(name)

    def write(self, name: str, content: bytes) -> None:
        """Write a new small file, which is there as a whole or not at all."""
        half = f"{name}.half"
        self._files.write(half, content)
        self.keep(half)
        self.move(half, name)

    @contextmanager
    def written_locally(self) -> Iterator[Path]:
        """Yield a folder on this machine; the files that the block writes there end up in this one.

        They replace earlier files of the same names.
        """
        if self._files.is_local:
            yield self._files.here("")
            return
        with TemporaryDirectory(prefix="duequeue-") as name:
            yield Path(name)
            for file in Path(name).rglob("*"):
                if file.is_file():
                    self._upload(file, file.relative_to(name).as_posix())

    def move(self, name: str, to: str) -> None:
        """Move a file in one step, and make sure that its new place survives a power failure."""
        self._files.make_folder(_above(to))
        if not self._files.move(name, to):
            raise OSError(f"{self.of(name)} could not be moved to {self.of(to)}")
        if self._files.is_local:
            written = self._files.here(to)
            for each in (written, written.parent, written.parent.parent):
                _to_disk(each)

    def keep(self, name: str) -> None:
        """Make sure that a file, or a folder with all its contents, survives a power failure.

        Only a local file system needs this; the others do it by themselves.
        """
        if self._files.is_local:
            kept = self._files.here(name)
            for each in (*kept.rglob("*"), kept, kept.parent):
                _to_disk(each)

    def delete(self, name: str) -> None:
        """Delete a folder with all its contents, if it exists."""
        self._files.delete(name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out during the block, on file systems that can lock a file."""
        if is_connect(self._spark):
            self._check_shared()
        self._files.make_folder("")
        if not self._files.is_local:
            yield
            return
        here = self._files.here("")
        _to_disk(here.parent)
        with (here / "_lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidArgument(
                    self._argument,
                    text=f"another process is writing into folder {self.path}: "
                    "wait until it is done, or name another folder",
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
        """Yield whether nobody reads the folder; if so, readers wait during the block."""
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
        """Open the folder itself for a lock, because a reader may be unable to create a file."""
        if not self._files.is_local:
            yield None
            return
        opened = os.open(self._files.here(""), os.O_RDONLY)
        try:
            yield opened
        finally:
            os.close(opened)

    def _check_shared(self) -> None:
        """Raise if the server of Spark Connect has another folder under this path."""
        place, mark = self._existing(), f"_shared-{uuid4().hex}"
        files = open_files(self._spark, place or "/")
        files.write(mark, b"")
        try:
            self._spark.read.text(f"{place}/{mark}").isEmpty()
        except AnalysisException:
            raise InvalidArgument(
                self._argument,
                f"{self.path} is not the same folder on the server of Spark "
                "Connect as in this process: give a folder that both share",
            ) from None
        finally:
            files.delete(mark)

    def _existing(self) -> str:
        """Return this path, or the nearest one above it that exists on this machine."""
        path = self.path
        while self._files.is_local and path and not open_files(self._spark, path).has(""):
            path = _above(path)
        return path

    def _upload(self, file: Path, name: str) -> None:
        self._files.make_folder(_above(name))
        self._files.write(name, file.read_bytes())


def is_url(path: str | Path) -> bool:
    """Return whether a path names its file system, such as hdfs://host/folder or file:///folder."""
    return _URL.match(str(path)) is not None


def absolute_path(given: str) -> str:
    """Return a path that Java can use, which may have been started in another folder."""
    return given.rstrip("/") if is_url(given) else str(Path(given).absolute())


def _above(name: str) -> str:
    return name.rpartition("/")[0]


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
