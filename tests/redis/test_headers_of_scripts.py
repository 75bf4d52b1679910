"""What the first lines of a script may say."""

import pytest

from duequeue.stores.redis.scripts import divided


def test_the_first_lines_are_not_part_of_the_script() -> None:
    headers, text = divided("offer", "-- lasting\n-- keys: waiting ended\n-- Offers.\nreturn 1\n")
    assert headers == {"lasting": [], "keys": ["waiting", "ended"]}
    assert text == "-- Offers.\nreturn 1\n"


def test_an_unknown_fact_is_refused() -> None:
    with pytest.raises(LookupError, match=r"offer states 'lastin'"):
        divided("offer", "-- lastin\n-- keys: waiting\nreturn 1\n")
