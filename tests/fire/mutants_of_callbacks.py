"""Bugs of push processes, which show in a round of callbacks."""

from collections.abc import Callable, Mapping
from typing import Any

from duequeue.callbacks import settlement
from duequeue.callbacks.answer import CallAnswer
from duequeue.callbacks.posting import CallFailed, Poster
from tests.fire.violations import Broken

_post = Poster.post


async def _post_and_hope(poster: Poster, *arguments: Any) -> CallAnswer:
    try:
        return await _post(poster, *arguments)
    except CallFailed:
        return CallAnswer(200, {})


CALLBACK_CHANGES: Mapping[str, Callable[[], None]] = {
    "no answer is a good answer": lambda: setattr(Poster, "post", _post_and_hope),
    "a failure gives the attempt back": lambda: setattr(
        settlement, "_later", lambda *_: settlement.GIVEN_BACK
    ),
}
CALLBACK_MUTANTS: Mapping[str, Broken] = {
    "no answer is a good answer": Broken.LOST,
    "a failure gives the attempt back": Broken.ATTEMPT,
}
