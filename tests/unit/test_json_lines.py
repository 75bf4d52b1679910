"""Log records as JSON: one line each, whatever is in them."""

import json
import logging
from typing import Any, NoReturn

import pytest

from duequeue.cli.json_lines import JsonLines


def fail() -> NoReturn:
    raise LookupError("a\nb")


def line_of(**changes: Any) -> dict[str, Any]:
    record = logging.makeLogRecord(
        {"name": "shop", "levelname": "INFO", "msg": "hello %s", "args": ("you",), "created": 1.5}
    )
    vars(record).update(changes)
    text = JsonLines().format(record)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_record() -> None:
    found = line_of(process=7)
    assert found == {
        "time": "1970-01-01T00:00:01.500000+00:00",
        "level": "INFO",
        "logger": "shop",
        "message": "hello you",
        "process": 7,
    }


def test_a_traceback_is_inside() -> None:
    with pytest.raises(LookupError) as raised:
        fail()
    error = (raised.type, raised.value, raised.tb)
    found = line_of(exc_info=error, stack_info="Stack:\n  here")
    assert found["traceback"].startswith("Traceback (most recent call last):\n")
    assert found["traceback"].endswith("LookupError: a\nb")
    assert found["stack"] == "Stack:\n  here"


def test_events_and_extra_fields_stand_beside_the_others() -> None:
    found = line_of(duequeue={"event": "Buried", "key": "a"}, tenant=object, level="mine")
    assert (found["event"], found["key"], found["tenant"]) == ("Buried", "a", "<class 'object'>")
    assert found["level"] == "INFO"
    assert line_of(duequeue="not a dict")["message"] == "hello you"
