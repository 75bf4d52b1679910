"""The secrets of an endpoint while they change, and afterwards."""

from datetime import timedelta

from duequeue.callbacks.signing import MOST_OLDER, new_keys, new_secret

NOW = 1_790_000_000_000
HOUR = timedelta(hours=1)


def test_of_many_older_secrets_the_latest_still_sign() -> None:
    texts = [new_secret() for _ in range(MOST_OLDER + 3)]
    keys = new_keys(texts[0])
    for text in texts[1:]:
        keys = keys.rotated(text, HOUR, NOW)
    newest_first = texts[::-1]
    assert keys.text == newest_first[0]
    assert [each.text for each in keys.older] == newest_first[1 : MOST_OLDER + 1]


def test_a_secret_that_comes_back_is_not_kept_twice() -> None:
    first, second = new_secret(), new_secret()
    keys = new_keys(first).rotated(second, HOUR, NOW).rotated(first, HOUR, NOW)
    assert (keys.text, [each.text for each in keys.older]) == (first, [second])


def test_no_secret_shows() -> None:
    first, second = new_secret(), new_secret()
    keys = new_keys(first).rotated(second, HOUR, NOW)
    for shown in (repr(keys), str(keys), f"{keys.older}"):
        assert first not in shown
        assert second not in shown
