"""The SQLite store: the standard library's `sqlite3`."""
