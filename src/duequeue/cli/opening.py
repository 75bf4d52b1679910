"""The queue that a command works on: its arguments, and how it is opened."""

import argparse
import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from duequeue.backends import backend_for, is_server
from duequeue.cli.address import add_url
from duequeue.cli.config import FILE, VARIABLES, load_defaults
from duequeue.codec import Codec
from duequeue.errors import InvalidArgument, SchemaError
from duequeue.flows import opening
from duequeue.parts import Parts, open_parts
from duequeue.port.store import Backend
from duequeue.queue import Queue
from duequeue.queue_names import QueueName, queues
from duequeue.retry_policy import RetryPolicy

# A person waits for the answer, and sees the error if there is none.
RETRY = RetryPolicy(budget=timedelta(seconds=10))
# As the help describes it.
DEFAULT_QUEUE = f"${VARIABLES['queue']}, queue in {FILE}, or the only one"


class NothingFound(LookupError):
    """There is no such queue, message, cron or burial."""


class RawCodec(NamedTuple):
    """The payloads of any queue as bytes, whatever their type."""

    type_name: str

    def encode(self, value: bytes, /) -> bytes:
        """Return the bytes."""
        return value

    def decode(self, data: bytes, /) -> bytes:
        """Return the bytes."""
        return data


@dataclass(frozen=True)
class Place:
    """A database or a server, and the token that it needs, if any."""

    url: str
    token: str | None = None

    def __repr__(self) -> str:
        return "<Place>"

    def backend(self) -> Backend:
        """Return the backend, without contacting it."""
        return backend_for(self.url, **self._options())

    def queues(self) -> list[QueueName]:
        """List the queues, without changing anything."""
        return queues(self.url, retry=RETRY, **self._options())

    def open(self, name: str, codec: Codec[Any], **options: Any) -> Queue[Any]:
        """Open a queue."""
        return Queue.open(self.url, name, codec=codec, retry=RETRY, **self._options(), **options)

    def parts(self, found: QueueName) -> Parts[bytes]:
        """Open a queue that exists, with the parts on which the library's own flows run."""
        codec = RawCodec(found.payload_type)
        checked = opening.checked(
            self.backend(), found.name, codec=codec, retry=RETRY, migrate=False
        )
        return open_parts(checked)

    def _options(self) -> dict[str, Any]:
        return {} if self.token is None else {"token": self.token}


def add_place(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the arguments that name the database or the server."""
    add_url(parser, required=required)
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"a file with the token for a server (default: the token in ${VARIABLES['token']}, "
        f"or token in {FILE})",
    )


def add_queue(
    parser: argparse.ArgumentParser, *, required: bool = True, default: str = DEFAULT_QUEUE
) -> None:
    """Add the arguments that name a queue that exists."""
    add_queue_name(parser, required=required, default=default)
    parser.add_argument("--type", metavar="NAME", help="the payload type, if the queue has several")


def add_queue_name(
    parser: argparse.ArgumentParser, *, required: bool = True, default: str = DEFAULT_QUEUE
) -> None:
    """Add the arguments that name a queue, whatever its payload type; `default` is for the help."""
    add_place(parser, required=required)
    parser.add_argument("--queue", metavar="NAME", help=f"the queue (default: {default})")


def place_of(given: argparse.Namespace) -> Place:
    """Return the database or server of a command."""
    silence = logging.getLogger("duequeue")
    if not silence.handlers:  # an error is printed once, when the command ends
        silence.addHandler(logging.NullHandler())
    if given.url is None:
        raise InvalidArgument(
            "--url", text=f"pass --url with the database or server, or set {VARIABLES['url']}"
        )
    if given.token_file is not None:
        return Place(given.url, _token_in(given.token_file))
    # A token in the environment is for servers. A database has its own password.
    return Place(given.url, load_defaults().token_for(given.url) if is_server(given.url) else None)


def chosen_queue(given: argparse.Namespace, place: Place) -> QueueName:
    """Return the queue of a command, which must exist; it may be the only one there is."""
    name = given.queue or load_defaults().queue
    found = [each for each in place.queues() if name in (None, each.name)]
    of_type = [each for each in found if given.type in (None, each.payload_type)]
    if len(of_type) == 1:
        return of_type[0]
    if not found:
        what = "no queue" if name is None else f"no queue {name!r}"
        raise NothingFound(f"{place.backend().address} has {what}; `duequeue queues` lists them")
    if not of_type:
        raise NothingFound(f"no queue has the type {given.type!r}; there are {_types(found)}")
    if len({each.name for each in of_type}) > 1:
        names = ", ".join(sorted({each.name for each in of_type}))
        raise InvalidArgument(
            "--queue", text=f"there are several queues: pass --queue with one of {names}"
        )
    raise InvalidArgument(
        "queue", f"{name!r} has several types: pass --type with one of {_types(found)}"
    )


def open_raw(given: argparse.Namespace, **options: Any) -> Queue[bytes]:
    """Open the queue of a command, with payloads as bytes; neither it nor a table is created."""
    place = place_of(given)
    return open_found(place, chosen_queue(given, place), **options)


def open_found(place: Place, found: QueueName, **options: Any) -> Queue[bytes]:
    """Open a queue that exists, with payloads as bytes."""
    return place.open(found.name, RawCodec(found.payload_type), migrate=False, **options)


def existing_queues(place: Place) -> list[QueueName] | None:
    """List the queues; None means that the tables are still to be created."""
    try:
        return place.queues()
    except SchemaError:
        return None


def _types(found: list[QueueName]) -> str:
    return ", ".join(each.payload_type for each in found)


def _token_in(file: str) -> str:
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidArgument("--token-file", f"{file} cannot be read: {reason}") from error
