"""Codecs by their names on the command line."""

from typing import Any

from duequeue.cli.handler_path import find
from duequeue.codec import CODECS, Codec, codec_for
from duequeue.errors import InvalidArgument


def load_codec(text: str) -> Codec[Any]:
    """Return the codec of that name, or of the class or codec at `module:Class`."""
    if text in CODECS:
        return CODECS[text]
    if ":" not in text:
        raise InvalidArgument("codec", f"must be json, text, bytes or module:Class, not {text!r}")
    found = find(text)
    is_codec_class = isinstance(found, type) and all(
        hasattr(found, name) for name in ("type_name", "encode", "decode")
    )
    return codec_for(found() if is_codec_class else found)
