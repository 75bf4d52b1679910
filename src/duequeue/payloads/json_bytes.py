"""Values as JSON; equal values have equal bytes."""

from math import isfinite

import msgspec

from duequeue.errors import InvalidArgument, InvalidType
from duequeue.payloads.pydantic_models import dump_model

NO_UTF_8 = "holds half of a surrogate pair, which UTF-8 cannot express"
_encoder = msgspec.json.Encoder(order="deterministic", enc_hook=dump_model)


def encode_json(value: object, /) -> bytes:
    """Encode a value, or raise for one that JSON cannot express."""
    try:
        data = _encoder.encode(value)
    except TypeError as error:
        reason = "the keys of a dict must be strings" if "str keys" in str(error) else error
        raise InvalidType("payload", f"cannot be written as JSON: {reason}") from error
    except UnicodeEncodeError:
        raise InvalidArgument("payload", NO_UTF_8) from None
    except RecursionError:
        raise InvalidArgument(
            "payload", "contains itself or is nested too deeply, which JSON cannot express"
        ) from None
    # JSON has no notation for these numbers, and the encoder silently writes null.
    if b"null" in data and not _all_finite(msgspec.to_builtins(value, enc_hook=dump_model)):
        raise InvalidArgument("payload", "holds nan or an infinity, which JSON cannot express")
    return data


def _all_finite(value: object) -> bool:
    match value:
        case float():
            return isfinite(value)
        case dict():
            return all(map(_all_finite, value.values()))
        case list() | tuple():
            return all(map(_all_finite, value))
        case _:
            return True
