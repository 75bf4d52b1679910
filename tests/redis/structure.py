"""What must hold of the keys of a queue at any moment, whatever was done to it."""

from typing import Any

from duequeue.stores.redis.keys import QueueKeys

NAMES = ("waiting", "leased", "ended", "messages", "states", "burials", "buried_at", "buried_keys")


def check_structure(client: Any, kind: str) -> int:
    """See that every message is in exactly one place and nothing is left over; count them."""
    keys = {name: QueueKeys(kind).named(name) for name in NAMES}
    messages: dict[bytes, bytes] = client.hgetall(keys["messages"])
    states: dict[bytes, bytes] = client.hgetall(keys["states"])
    for flag in (b"large", b"answers"):
        states.pop(flag, None)
    waiting = dict(map(split, client.zrange(keys["waiting"], 0, -1)))
    leased: list[bytes] = client.zrange(keys["leased"], 0, -1)
    ended: list[bytes] = client.zrange(keys["ended"], 0, -1)

    ids = {content.split(b" ", 1)[0]: key for key, content in messages.items()}
    key_of_state = {each: state.split(b" ", 3)[3] for each, state in states.items()}
    assert len(ids) == len(messages), "two messages have one id"
    assert not waiting.keys() & set(leased), "a message is free and leased"
    assert {**waiting, **{each: key_of_state[each] for each in leased}} == ids
    assert set(ended) <= waiting.keys(), "the note of an ended lease was left over"
    assert states.keys() <= ids.keys(), "the state of a message was left over"
    assert all(ids[each] == key for each, key in key_of_state.items())
    held = {each for each, state in states.items() if not state.startswith(b"0 ")}
    assert held == {*leased, *ended}, "a token is good for a message that nobody holds"

    burials: dict[bytes, bytes] = client.hgetall(keys["burials"])
    assert burials.keys() == set(client.zrange(keys["buried_at"], 0, -1))
    named = [each.rpartition(b"\0") for each in client.zrange(keys["buried_keys"], 0, -1)]
    assert {number: key for key, _, number in named} == {
        number: key_of_burial(text) for number, text in burials.items()
    }
    return len(messages)


def split(member: bytes) -> tuple[bytes, bytes]:
    """Return the id and the key of a message that waits."""
    digits = member[0] - 95
    return member[1:digits], member[digits:]


def key_of_burial(text: bytes) -> bytes:
    """Return the key of a burial."""
    _, _, _, size, _, rest = text.split(b" ", 5)
    return rest[: int(size)]
