"""How a URL names an SQLite file."""

from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from duequeue.stores.url_parts import split_options

SYNCHRONOUS = ("full", "normal")


class SqliteSettings(NamedTuple):
    """A checked path, as the URL gives it, and SQLite's `synchronous`."""

    path: str
    synchronous: str

    @classmethod
    def from_url(cls, url: str) -> "SqliteSettings":
        """Parse `sqlite:///path/to/file.db?synchronous=normal`."""
        location, options = split_options(url)
        slashed = location.partition(":")[2]
        if not slashed.startswith("///"):
            raise ValueError(
                "url of an SQLite file must have three slashes, as in sqlite:///app.db"
            )
        path = unquote(slashed.removeprefix("///"))
        if path in {"", ":memory:"}:
            raise ValueError(
                "url names no SQLite file: use sqlite:///app.db, or memory: for a queue without one"
            )
        synchronous = options.pop("synchronous", "full")
        if synchronous not in SYNCHRONOUS:
            raise ValueError(f"synchronous must be one of {SYNCHRONOUS}, not {synchronous!r}")
        if options:
            raise ValueError(
                f"url has unknown options {sorted(options)}; the only known option is: synchronous"
            )
        return cls(path, synchronous)


def absolute_url(url: str) -> str:
    """Return a URL that names the same file in a process with another working folder."""
    path = Path(SqliteSettings.from_url(url).path).absolute()
    location, mark, options = url.partition("?")
    return f"{location.partition(':')[0]}:///{quote(str(path))}{mark}{options}"
