"""Access to the files of a folder, through Spark's Java or through pyarrow.

A session of Spark Connect has no Java in this process. Then pyarrow reaches local folders, HDFS and
object stores.
"""

import re
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from duequeue.spark.session import is_connect

_FILE = re.compile(r"file:(?://(?:localhost)?(?=/))?", re.IGNORECASE)
_S3 = re.compile(r"s3[an]://", re.IGNORECASE)


class Files(Protocol):
    """The files of one folder; names are relative to it, and "" is the folder itself."""

    is_local: bool

    def has(self, name: str) -> bool:
        """Return whether there is such a file or folder."""

    def names(self, name: str) -> list[str]:
        """List an existing folder."""

    def sizes(self, name: str) -> dict[str, int]:
        """Return the size of each file in an existing folder, in bytes."""

    def read(self, name: str) -> bytes:
        """Read a whole file."""

    def write(self, name: str, content: bytes) -> None:
        """Write a whole file, which replaces an earlier one; create its folder if it is missing."""

    def make_folder(self, name: str) -> None:
        """Create a folder and those above it, if they are missing."""

    def move(self, name: str, to: str) -> bool:
        """Move a file, and return whether that succeeded."""

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all its contents, if it exists."""

    def here(self, name: str) -> Path:
        """Return where a name is on this machine, if the folder is local."""


def open_files(spark: SparkSession, path: str) -> Files:
    """Return the file system of a folder; raise OSError if it cannot be reached."""
    return ArrowFiles(path) if is_connect(spark) else JavaFiles(spark, path)


class JavaFiles:
    """A folder on any file system that Spark is set up for, through the Java of this session."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - a client of Connect lacks it

        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001 - the only way to the file systems of Spark
        self._path = path
        try:
            self._files = self._at("").getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
            self.has("")  # a server that does not answer is reported now, not after the work
        except Py4JJavaError as error:
            raise OSError(str(error.java_exception.getMessage())) from error
        except PySparkException as error:
            raise OSError(str(error)) from error
        self.is_local = self._files.getScheme() == "file"

    def has(self, name: str) -> bool:
        """Return whether there is such a file or folder."""
        return bool(self._files.exists(self._at(name)))

    def names(self, name: str) -> list[str]:
        """List an existing folder."""
        return [each.getPath().getName() for each in self._files.listStatus(self._at(name))]

    def sizes(self, name: str) -> dict[str, int]:
        """Return the size of each file in an existing folder, in bytes."""
        found = self._files.listStatus(self._at(name))
        return {each.getPath().getName(): int(each.getLen()) for each in found if each.isFile()}

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        stream = self._files.open(self._at(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a whole file, which replaces an earlier one."""
        stream = self._files.create(self._at(name), True)  # noqa: FBT003 - Java has no keyword arguments
        try:
            stream.write(content)
        finally:
            stream.close()

    def make_folder(self, name: str) -> None:
        """Create a folder and those above it, if they are missing."""
        self._files.mkdirs(self._at(name))

    def move(self, name: str, to: str) -> bool:
        """Move a file, and return whether that succeeded."""
        return bool(self._files.rename(self._at(name), self._at(to)))

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all its contents, if it exists."""
        self._files.delete(self._at(name), True)  # noqa: FBT003 - Java has no keyword arguments

    def here(self, name: str) -> Path:
        """Return where a name is on this machine, if the folder is local."""
        return Path(self._at(name).toUri().getPath())

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(_below(self._path, name))


class ArrowFiles:
    """A folder that this process reaches by itself, without the Java of Spark."""

    def __init__(self, path: str) -> None:
        self.is_local = not urlsplit(path).netloc or _FILE.match(path) is not None
        if self.is_local:
            self._files, self._path = fs.LocalFileSystem(), _FILE.sub("", path, count=1)
        else:
            try:
                self._files, self._path = fs.FileSystem.from_uri(_S3.sub("s3://", path))
                self.has("")
            except ValueError as error:  # Arrow's error for a scheme that it does not know
                raise OSError(str(error)) from error

    def has(self, name: str) -> bool:
        """Return whether there is such a file or folder."""
        return bool(self._kind(name) != fs.FileType.NotFound)

    def names(self, name: str) -> list[str]:
        """List an existing folder, without the checksums that Spark writes next to local files."""
        return [each.base_name for each in self._listed(name)]

    def sizes(self, name: str) -> dict[str, int]:
        """Return the size of each file in an existing folder, in bytes."""
        return {each.base_name: each.size for each in self._listed(name) if each.is_file}

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        with self._files.open_input_stream(self._at(name), compression=None) as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes) -> None:
        """Write a whole file, which replaces an earlier one."""
        self.make_folder(name.rpartition("/")[0])
        with self._files.open_output_stream(self._at(name), compression=None) as stream:
            stream.write(content)

    def make_folder(self, name: str) -> None:
        """Create a folder and those above it, if they are missing."""
        self._files.create_dir(self._at(name), recursive=True)

    def move(self, name: str, to: str) -> bool:
        """Move a file, and return whether that succeeded."""
        self._files.move(self._at(name), self._at(to))
        return True

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all its contents, if it exists."""
        kind = self._kind(name)
        if kind == fs.FileType.Directory:
            self._files.delete_dir(self._at(name))
        elif kind != fs.FileType.NotFound:
            self._files.delete_file(self._at(name))

    def here(self, name: str) -> Path:
        """Return where a name is on this machine, if the folder is local."""
        return Path(self._at(name))

    def _listed(self, name: str) -> list[fs.FileInfo]:
        found = self._files.get_file_info(fs.FileSelector(self._at(name)))
        return [each for each in found if not each.base_name.endswith(".crc")]

    def _kind(self, name: str) -> fs.FileType:
        return self._files.get_file_info(self._at(name)).type

    def _at(self, name: str) -> str:
        return _below(self._path, name)


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if name else path
