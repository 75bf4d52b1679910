"""An SQLite file, and the durability that all contenders on it share."""

import sqlite3
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit


class SqliteFile(NamedTuple):
    """The path, and when a commit is flushed to the disk: FULL at once, NORMAL later."""

    path: str
    synchronous: str

    @classmethod
    def of(cls, url: str) -> "SqliteFile":
        """Parse a URL."""
        parts = urlsplit(url)
        return cls(parts.path.removeprefix("/"), parse_qs(parts.query)["synchronous"][0])

    def level(self, connection: sqlite3.Connection) -> None:
        """Give a contender's connection the same durability as ours."""
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute(f"PRAGMA synchronous = {self.synchronous}")
