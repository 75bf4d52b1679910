"""Payloads on the command line: how they are given and shown."""

import argparse
import sys
from base64 import b64decode, b64encode
from binascii import Error
from pathlib import Path
from typing import Any

import msgspec

from duequeue.codec import CODECS, Codec
from duequeue.errors import InvalidArgument
from duequeue.payloads.json_bytes import encode_json

STDIN = "-"
TEXT, BYTES = "text", "bytes"


def add_payload(parser: argparse.ArgumentParser) -> None:
    """Add the payload and its form."""
    parser.add_argument(
        "payload",
        nargs="?",
        help="JSON, or @FILE to read a file, or - to read standard input (default: null)",
    )
    form = parser.add_mutually_exclusive_group()
    for name, about in ((TEXT, "text"), (BYTES, "bytes")):
        form.add_argument(
            f"--{name}",
            dest="codec",
            action="store_const",
            const=name,
            help=f"the payload is {about}, for a queue of that type",
        )
    form.add_argument(
        "--codec",
        metavar="MODULE:CLASS",
        help="the payload type or codec of the queue, which then checks the payload",
    )


def read_payload(text: str | None, codec: Codec[Any]) -> Any:
    """Read the payload of an argument as the codec's queue has it."""
    if text is None:
        data = b"" if codec.type_name in (TEXT, BYTES) else b"null"
    elif text == STDIN:
        data = sys.stdin.buffer.read()
    elif text.startswith("@"):
        data = _content(text[1:])
    else:
        data = text.encode(errors="surrogateescape")
    try:
        return codec.decode(data)
    except Exception as error:
        hint = "; quote it for your shell, or pass --text" if codec.type_name == "json" else ""
        raise InvalidArgument("payload", f"is not {codec.type_name}: {error}{hint}") from error


def payload_facts(data: bytes, payload_type: str) -> dict[str, Any]:
    """Show a payload as a JSON value where it is one, as text, or else in base64."""
    try:
        if payload_type == TEXT:
            return {"payload": data.decode()}
        if payload_type != BYTES:
            return {"payload": msgspec.json.decode(data)}
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        pass
    return {"payload_b64": b64encode(data).decode()}


def exact_payload_facts(data: bytes, payload_type: str) -> dict[str, Any]:
    """Show a payload so that `payload_bytes` returns these very bytes."""
    facts = payload_facts(data, payload_type)
    if "payload" in facts and payload_bytes(facts, payload_type) != data:
        return {"payload_b64": b64encode(data).decode()}
    return facts


def payload_bytes(facts: dict[str, Any], payload_type: str) -> bytes:
    """Return the bytes that facts stand for."""
    if "payload_b64" in facts:
        try:
            return b64decode(facts["payload_b64"], validate=True)
        except (Error, TypeError, ValueError) as error:
            raise InvalidArgument("payload_b64", f"is not base64: {error}") from error
    if "payload" not in facts:
        raise InvalidArgument("payload", "or payload_b64 is missing")
    if payload_type in (TEXT, BYTES):
        return CODECS[TEXT].encode(facts["payload"])
    return encode_json(facts["payload"])


def payload_text(facts: Any) -> str:
    """Show the payload of facts in a table."""
    if "payload_b64" in facts:
        return f"base64 {facts['payload_b64']}"
    payload = facts["payload"]
    return payload if isinstance(payload, str) else msgspec.json.encode(payload).decode()


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidArgument("payload", f"file {file} cannot be read: {error.strerror}") from error
