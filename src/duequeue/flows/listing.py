"""Pages of live messages in due order, and the texts by which users name a position in them."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from duequeue.defaults import LONGEST_PAGE
from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument, InvalidType
from duequeue.flows.context import Context
from duequeue.headers import shown_headers
from duequeue.instants import EARLIEST, LATEST, nearest_instant, to_millis
from duequeue.message import Page, Snapshot, State, checked_prefix
from duequeue.port.listing import FIRST, LAST, BurialId, Position, Selection
from duequeue.port.store import ListedMessage, StoredMessage

_CURSOR = re.compile(rb"(-?\d{1,19})\.(\d{1,19})\.[0-9a-f]{16}")
_BURIAL = re.compile(r"(-?\d{1,19})\.(\d{1,19})", re.ASCII)

T = TypeVar("T")


def cursor_at(context: Context[Any], position: Position) -> str:
    """Return the cursor of a position, with a checksum of the position and the queue."""
    numbers = f"{position.due_at}.{position.id}"
    queue = f"{context.name}|{context.codec.type_name}"
    checksum = sha256(f"{queue}|{numbers}".encode()).hexdigest()[:16]
    return urlsafe_b64encode(f"{numbers}.{checksum}".encode()).decode().rstrip("=")


def position_of(context: Context[Any], after: str) -> Position:
    """Return the position of a cursor, or raise if it was changed or comes from another queue."""
    if not isinstance(after, str):
        raise InvalidType(
            "after", f"must be the `next` of a page or None, not {type(after).__name__}"
        )
    parts = _CURSOR.fullmatch(_bytes_of(after))
    position = Position(int(parts[1]), int(parts[2])) if parts else None
    if position is None or not _exists(*position) or cursor_at(context, position) != after:
        raise InvalidArgument(
            "after",
            f"must be the `next` of a page of the queue {context.name!r}, unchanged, not {after!r}",
        )
    return position


def burial_text(burial: BurialId) -> str:
    """Return a burial's id as text."""
    return f"{burial.buried_at}.{burial.number}"


def burial_id(text: str, argument: str) -> BurialId:
    """Return the id that a text stands for, or raise for any other text."""
    if not isinstance(text, str):
        found = type(text).__name__
        raise InvalidType(argument, f"must be the id of a buried message, not {found}")
    parts = _BURIAL.fullmatch(text)
    burial = BurialId(int(parts[1]), int(parts[2])) if parts else None
    if burial is None or not _exists(*burial):
        raise InvalidArgument(argument, f"must be the id of a buried message, not {text!r}")
    return burial


def _exists(at: int, number: int) -> bool:
    """Return whether a row can have this instant and this number."""
    return EARLIEST <= at <= LATEST and number <= LAST


def _bytes_of(cursor: str) -> bytes:
    try:
        return urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except (UnicodeEncodeError, Error):
        return b""


def list_page(  # noqa: PLR0917 - the arguments of the faces, in their order
    context: Context[T],
    state: State | str | None,
    prefix: str | None,
    due_from: datetime | None,
    due_to: datetime | None,
    after: str | None,
    limit: int,
) -> Flow[Page[T]]:
    """List one page."""
    selection = selection_of(state, prefix, due_from, due_to, limit)
    position = None if after is None else position_of(context, after)
    return _list_page(context, selection._replace(after=position))


def selection_of(
    state: State | str | None,
    prefix: str | None,
    due_from: datetime | None,
    due_to: datetime | None,
    limit: int = LONGEST_PAGE,
) -> Selection:
    """Return the messages that match these filters, or raise for a filter that is not valid."""
    return Selection(
        limit=_checked_length(limit),
        state=None if state is None else _checked_state(state),
        prefix="" if prefix is None else checked_prefix(prefix),
        due_from=FIRST if due_from is None else to_millis(due_from, "due_from"),
        due_to=LAST + 1 if due_to is None else to_millis(due_to, "due_to"),
    )


def still_matches(context: Context[T], key: str, selection: Selection) -> Flow[bool]:
    """Return whether a key that was listed has a message that matches the filters now."""
    found = yield from context.run(partial(context.store.read, key))
    if not isinstance(found, StoredMessage):
        return False
    window = selection.window(context.now())
    return window.has(Position(found.due_at, LAST), found.leased_until)


def state_of(found: StoredMessage, now: int) -> State:
    """Return the state of a live message at an instant."""
    if found.leased_until > now:
        return State.LEASED
    return State.DUE if found.due_at <= now else State.FUTURE


def _list_page(context: Context[T], selection: Selection) -> Flow[Page[T]]:
    now = context.now()
    # One message more than asked for shows whether there is another page.
    asked = selection._replace(limit=selection.limit + 1)
    found = yield from context.run_long(partial(context.store.listed, asked, now))
    shown = found[: selection.limit]
    is_last = len(found) == len(shown)
    cursor = None if is_last else cursor_at(context, _position_of(shown[-1]))
    return Page([_snapshot(context, each, now) for each in shown], cursor)


def _position_of(listed: ListedMessage) -> Position:
    return Position(listed.message.due_at, listed.id)


def _snapshot(context: Context[T], listed: ListedMessage, now: int) -> Snapshot[T]:
    """Show as much of a message as possible, because a damaged one must not hide the others."""
    _, key, found = listed
    payload, reason = _decoded(context, found.payload)
    state = state_of(found, now)
    return Snapshot(
        key=key,
        payload=payload,
        due_at=nearest_instant(found.asked_at),
        state=state,
        attempts=found.attempts,
        headers=shown_headers(found.headers, key),
        leased_until=nearest_instant(found.leased_until) if state is State.LEASED else None,
        reason=reason,
        deliver_at=nearest_instant(found.due_at),
        expires_at=None if found.expires_at is None else nearest_instant(found.expires_at),
    )


def _decoded(context: Context[Any], payload: bytes) -> tuple[Any, str | None]:
    try:
        return context.codec.decode(payload), None
    except Exception as error:  # noqa: BLE001 - by contract, any error means undecodable
        return None, f"undecodable payload: {error!r}"


def _checked_length(limit: int) -> int:
    if type(limit) is not int:
        raise InvalidType("limit", f"must be an int, not {type(limit).__name__}")
    if not 1 <= limit <= LONGEST_PAGE:
        raise InvalidArgument("limit", f"must be from 1 to {LONGEST_PAGE}, not {limit}")
    return limit


def _checked_state(state: State | str) -> State:
    if not isinstance(state, State | str):
        raise InvalidType(
            "state", f"must be a State, its value or None, not {type(state).__name__}"
        )
    live = [each.value for each in State if each is not State.BURIED]
    value = state.value if isinstance(state, State) else state
    if value not in live:
        hint = "; `buried` lists buried messages" if value == State.BURIED.value else ""
        raise InvalidArgument("state", f"must be one of {', '.join(live)}, not {state!r}{hint}")
    return State(value)
