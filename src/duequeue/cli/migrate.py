"""`duequeue migrate` creates or updates the tables, or prints statements for you to run."""

import argparse

from duequeue.backends import is_server
from duequeue.cli.opening import add_place, place_of
from duequeue.drive import running
from duequeue.errors import InvalidArgument
from duequeue.port.store import Backend
from duequeue.retry_policy import RetryPolicy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = "Create the tables of a database, or bring them up to date."
    add_place(parser)
    parser.add_argument(
        "--sql",
        action="store_true",
        help="print the statements that create the tables, and contact nothing",
    )
    parser.add_argument(
        "--roles",
        action="store_true",
        help="print the statements that create roles with few rights, and contact nothing",
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Migrate the database, or print statements."""
    place = place_of(given)
    backend = place.backend()
    if given.sql:
        print(backend.schema_script())
        return 0
    if given.roles:
        print(_roles_script(backend))
        return 0
    session = backend.session()
    try:
        applied = running.run(session, backend.migrate, RetryPolicy())
    finally:
        session.close()
    if is_server(place.url):
        place.queues()  # raises; a server that answers has brought its tables up to date itself
    for name in applied:
        print(f"applied {name}")
    print(f"{backend.address} is up to date")
    return 0


def _roles_script(backend: Backend) -> str:
    script = backend.roles_script()
    if not script:
        raise InvalidArgument("--roles", f"is for PostgreSQL; {backend.address} has no logins")
    return script
