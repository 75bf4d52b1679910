"""The queries stay short: what dialects have in common is written once."""

from pathlib import Path

import duequeue

SOURCE = Path(duequeue.__file__).parent
QUERIES = [SOURCE / "stores" / "sql", SOURCE / "bulk"]
# The schemas, which never change once they are released, and what only administrators run.
OTHERS = {"examining.sql", "roles.sql"}
MOST_LINES = 3_300


def test_the_queries_of_all_dialects_have_few_lines() -> None:
    found = [path for folder in QUERIES for path in folder.rglob("*.sql")]
    queries = [path for path in found if path.parent.name != "migrations"]
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in queries}
    assert sum(size for path, size in lines.items() if path.name not in OTHERS) <= MOST_LINES
