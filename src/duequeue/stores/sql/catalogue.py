"""Load the named queries of a dialect's files of SQL."""

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$\n?", re.MULTILINE)


@cache
def load_queries(dialect: str, file: str = "queries.sql") -> dict[str, str]:
    """Return the queries of a dialect by name, without their comments."""
    text = files(f"duequeue.stores.sql.{dialect}").joinpath(file).read_text("utf-8")
    _, *parts = _NAME.split(text)
    names, bodies = parts[0::2], parts[1::2]
    return {
        name: _COMMENT.sub("", body).strip().removesuffix(";")
        for name, body in zip(names, bodies, strict=True)
    }
