"""Headers as they are stored."""

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duequeue.headers import MAX_HEADERS_BYTES, decode_headers, encode_headers

words = st.text(st.characters(codec="utf-8"), max_size=50)


@given(st.dictionaries(words, words, max_size=20))
def test_what_goes_in_comes_out(headers: dict[str, str]) -> None:
    assert decode_headers(encode_headers(headers)) == headers


@pytest.mark.parametrize("nothing", [None, {}])
def test_nothing_is_stored_for_nothing(nothing: dict[str, str] | None) -> None:
    assert encode_headers(nothing) is None
    assert decode_headers(None) == {}


def test_the_order_does_not_show() -> None:
    assert encode_headers({"a": "1", "b": "2"}) == encode_headers({"b": "2", "a": "1"})


def test_any_mapping_will_do() -> None:
    assert decode_headers(encode_headers(MappingProxyType({"a": "1"}))) == {"a": "1"}


@pytest.mark.parametrize(
    "headers", [{"a": 1}, {1: "a"}, {"a": None}, {"a": b"1"}, ["a"], [("a", "1")], "ab", 5, [], ""]
)
def test_other_things_are_refused(headers: Any) -> None:
    with pytest.raises(TypeError, match="headers must map strings to strings"):
        encode_headers(headers)


def test_text_that_no_database_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="headers are not valid Unicode"):
        encode_headers({"a": "\ud800"})


@pytest.mark.parametrize("letter", ["x", "ü", "\N{FIRE}"])
def test_the_limit_is_in_bytes(letter: str) -> None:
    frame = len('{"a":""}')
    fits, rest = divmod(MAX_HEADERS_BYTES - frame, len(letter.encode()))
    just = letter * fits + "x" * rest
    assert decode_headers(encode_headers({"a": just})) == {"a": just}
    with pytest.raises(ValueError, match=f"the limit is {MAX_HEADERS_BYTES}"):
        encode_headers({"a": just + "x"})
