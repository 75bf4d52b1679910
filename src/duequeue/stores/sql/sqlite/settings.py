"""How a URL names an SQLite file."""

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from duequeue.errors import InvalidArgument
from duequeue.stores.url_parts import refuse_unknown_options, split_options

SYNCHRONOUS = ("full", "normal")
# Only the user who created the file may read and write it.
DEFAULT_MODE = 0o600


class SqliteSettings(NamedTuple):
    """A checked path, as the URL gives it, SQLite's `synchronous`, and the mode of a new file."""

    path: str
    synchronous: str
    mode: int

    @classmethod
    def from_url(cls, url: str) -> "SqliteSettings":
        """Parse `sqlite:///path/to/file.db?synchronous=normal`."""
        location, options = split_options(url)
        slashed = location.partition(":")[2]
        if not slashed.startswith("///"):
            raise InvalidArgument(
                "url", "of an SQLite file must have three slashes, as in sqlite:///app.db"
            )
        path = unquote(slashed.removeprefix("///"))
        if path in {"", ":memory:"}:
            raise InvalidArgument(
                "url",
                "names no SQLite file: use sqlite:///app.db, or memory: for a queue without one",
            )
        synchronous = options.pop("synchronous", "full")
        if synchronous not in SYNCHRONOUS:
            raise InvalidArgument(
                "url", text=f"synchronous must be one of {SYNCHRONOUS}, not {synchronous!r}"
            )
        mode = _mode(options.pop("mode", f"{DEFAULT_MODE:o}"))
        refuse_unknown_options(options, {"mode", "synchronous"})
        return cls(path, synchronous, mode)


def _mode(given: str) -> int:
    """Return the permissions of a new file, which its owner must be able to read and write."""
    if not re.fullmatch("0?[67][0-7][0-7]", given):
        raise InvalidArgument(
            "url",
            text="mode must be the permissions of the file in octal digits, such as 660, and let "
            f"its owner read and write, but it is {given!r}",
        )
    return int(given, 8)


def absolute_url(url: str) -> str:
    """Return a URL that names the same file in a process with another working folder."""
    path = Path(SqliteSettings.from_url(url).path).absolute()
    location, mark, options = url.partition("?")
    return f"{location.partition(':')[0]}:///{quote(str(path))}{mark}{options}"
