"""The turns of those who wait for one of a few places, in which the tokens take turns."""

from asyncio import Future
from collections import OrderedDict


class Turns:
    """Gives each token one place after the other, so that one with many does not hold up others."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, OrderedDict[Future[None], None]] = OrderedDict()
        self._last = ""

    def join(self, token: str, turn: "Future[None]") -> None:
        """Wait with a token, and perhaps with others too, until the turn has a result."""
        if self._free and not turn.done():
            self._free -= 1
            self._last = token
            turn.set_result(None)
        elif not turn.done():
            self._waiting.setdefault(token, OrderedDict())[turn] = None
            if self._last in self._waiting:  # who had a turn just now comes after a new token
                self._waiting.move_to_end(self._last)

    def drop(self, turn: "Future[None]") -> None:
        """Forget a turn, with whichever tokens it waits."""
        for token in [each for each, turns in self._waiting.items() if turn in turns]:
            del self._waiting[token][turn]
            if not self._waiting[token]:
                del self._waiting[token]

    def leave(self) -> None:
        """Give the place to the next who still waits, if there is one."""
        while self._waiting:
            token, turns = next(iter(self._waiting.items()))
            turn = next(iter(turns))
            is_given = not turn.done()  # otherwise its reader has just gone
            if is_given:
                turn.set_result(None)
                self._last = token
                self._waiting.move_to_end(token)
            self.drop(turn)
            if is_given:
                return
        self._free += 1
