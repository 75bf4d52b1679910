"""Payloads between the wire and the store.

The store keeps the bytes that a Python program with the usual codec of the payload type would
store. So programs in any language and consumers in Python share a queue. A payload type is part of
a queue's identity: `json`, `text` and `bytes` have the codecs of the same name, and any other type
is the JSON of a program's own class.
"""

from base64 import b64decode
from binascii import Error

import msgspec
from msgspec import UNSET, Raw, UnsetType

from duequeue.payloads.json_bytes import encode_json
from duequeue.payloads.stored_bytes import CheckedBytes
from duequeue.server.formats import JSON as JSON_FORMAT
from duequeue.server.formats import Format
from duequeue.server.problems import UNREADABLE, invalid

JSON, TEXT, BYTES = "json", "text", "bytes"

_decode_json = msgspec.json.Decoder().decode
_EMPTY = {TEXT: b"", BYTES: b""}


def to_stored(
    given: object | UnsetType, base64: str | UnsetType, type_name: str, argument: str
) -> bytes:
    """Return what a store keeps of the payload in a request."""
    if base64 is not UNSET:
        if given is not UNSET:
            raise invalid(f"{argument}payload", "give either payload or payload_b64, not both")
        return _checked(_from_base64(base64, argument), type_name, argument)
    if given is UNSET:
        return _EMPTY.get(type_name, b"null")
    return value_to_stored(given, type_name, f"{argument}payload")


def value_to_stored(value: object, type_name: str, argument: str) -> bytes:
    """Return what a store keeps of a value."""
    if type_name == TEXT:
        if not isinstance(value, str):
            raise invalid(argument, f"{argument} must be a string, because the queue holds text")
        return value.encode()
    if type_name == BYTES:
        if not isinstance(value, bytes):
            raise invalid(
                argument, f"{argument} must be given as payload_b64, because the queue holds bytes"
            )
        return value
    return encode_json(value)


def body_to_stored(body: bytes, type_name: str) -> bytes:
    """Return what a store keeps of a body that is itself the payload."""
    if not body:
        return _EMPTY.get(type_name, b"null")
    if type_name in {TEXT, BYTES}:
        return _checked(body, type_name, "")
    try:
        return encode_json(_decode_json(body))
    except msgspec.ValidationError:  # there is nothing else to be wrong without a type
        raise invalid("payload", "payload has a number that is too large; write a string") from None
    except UNREADABLE:
        raise invalid("payload", "payload is not valid JSON, which the queue requires") from None


def to_wire(
    data: bytes, type_name: str, form: Format, *, is_checked: bool = False
) -> tuple[Raw | UnsetType, str | UnsetType]:
    """Return `payload` and `payload_b64` of an answer, of which exactly one is set.

    What a poll returns was already checked against the type by `CheckedBytes`.
    """
    if is_checked and type_name == JSON and form is JSON_FORMAT:
        return Raw(data), UNSET
    if type_name == BYTES:
        return form.binary(data)
    if type_name == TEXT:
        try:
            return form.raw_value(data.decode()), UNSET
        except UnicodeDecodeError:
            return form.binary(data)
    try:
        return form.raw_json(data), UNSET
    except UNREADABLE:
        return form.binary(data)


def _from_base64(text: str, argument: str) -> bytes:
    try:
        return b64decode(text.encode("ascii"), validate=True)
    except (Error, UnicodeEncodeError, ValueError):
        place = f"{argument}payload_b64"
        raise invalid(place, f"{place} is not valid base64") from None


def _checked(data: bytes, type_name: str, argument: str) -> bytes:
    try:
        return CheckedBytes(type_name).decode(data)
    except ValueError:
        place = f"{argument}payload_b64" if argument else "payload"
        raise invalid(place, f"{place} is not {type_name}, which the queue requires") from None
