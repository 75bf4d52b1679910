"""Numbered, forward-only migrations, applied under a lock."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from duequeue.errors import SchemaError, StoreUnavailable
from duequeue.port.store import Steps
from duequeue.stores.sql.catalogue import load_queries
from duequeue.stores.sql.commands import BEGIN, Execute, Query, Row, SqlScript


class Migration(NamedTuple):
    """One numbered file of a dialect's `migrations` folder."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """A hash of the text, by which a migration that was edited afterwards is noticed."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@cache
def load_migrations(dialect: str) -> tuple[Migration, ...]:
    """Return a dialect's migrations in order."""
    folder = files(f"duequeue.stores.sql.{dialect}") / "migrations"
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(
        Migration(int(name[:4]), name.removesuffix(".sql"), (folder / name).read_text("utf-8"))
        for name in found
    )


def ensure_schema(dialect: str, *, migrate: bool) -> Steps[list[Migration]]:
    """Bring the tables up to date and return what was applied; without `migrate`, only check."""
    if not (yield from pending_migrations(dialect)):
        return []
    if not migrate:
        raise SchemaError(
            "the DueQueue tables are missing or out of date, and migrate=False forbids changing "
            "them: run `duequeue migrate --url …`, or apply the output of `duequeue migrate --sql`"
        )
    return (yield from _apply(dialect))


def missing_tables(place: str) -> SchemaError:
    """Return the error for a database that does not have our tables."""
    return SchemaError(
        f"{place} has no DueQueue tables: run `duequeue migrate --url …` for that database, or "
        "apply the output of `duequeue migrate --sql` there"
    )


def schema_script(dialect: str) -> str:
    """Return the whole schema as one script, for administrators who run DDL themselves."""
    parts = [load_queries(dialect)["create_migrations"] + ";\n"]
    for migration in load_migrations(dialect):
        parts.append(f"-- {migration.name}\n{migration.text}")
        parts.append(f"{_recorded(migration)};\n")
    return "\n".join(parts)


def _recorded(migration: Migration) -> str:
    values = f"{migration.number}, '{migration.name}', '{migration.checksum}'"
    return f"INSERT INTO duequeue_migration (number, name, checksum) VALUES ({values})"  # noqa: S608 - all of it is ours


def _apply(dialect: str) -> Steps[list[Migration]]:
    yield BEGIN
    locked: list[Row] = yield Query("lock_migrations")
    if locked == [(0,)]:
        raise StoreUnavailable("another process has been migrating this database for too long")
    yield Execute("create_migrations")
    # They are looked up again under the lock, because another process may have been faster.
    pending = yield from pending_migrations(dialect)
    for migration in pending:
        yield SqlScript(migration.text)
        yield Execute(
            "record_migration",
            {
                "number": migration.number,
                "name": migration.name,
                "checksum": migration.checksum,
            },
        )
    return pending


def pending_migrations(dialect: str) -> Steps[list[Migration]]:
    """Return the migrations that the database still lacks; raise if it has others than these."""
    known = load_migrations(dialect)
    exists: list[Row] = yield Query("has_migrations")
    if not exists[0][0]:
        return list(known)
    applied: list[Row] = yield Query("applied_migrations")
    _check_applied(known, applied)
    return list(known[len(applied) :])


def _check_applied(known: tuple[Migration, ...], applied: list[Row]) -> None:
    if len(applied) > len(known):
        raise SchemaError(
            f"the database has migration {applied[-1][1]}, which is newer than this DueQueue "
            f"knows ({known[-1].name} is its last); upgrade DueQueue in this process"
        )
    for migration, (number, name, checksum) in zip(known, applied, strict=False):
        if (number, name, checksum) != (migration.number, migration.name, migration.checksum):
            raise SchemaError(
                f"migration {name} in the database differs from {migration.name} of this DueQueue; "
                "one of them was edited after it was applied"
            )
