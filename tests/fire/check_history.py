"""The history: every message that left the queue has one row, and no other has."""

from collections import Counter
from collections.abc import Iterator

from tests.fire.histories import History, Operation
from tests.fire.logs import Made
from tests.fire.violations import Broken, Violation

OUTCOMES = {"ack": "acked", "bury": "buried", "drop": "dropped"}


def judge_history(history: History, calls: list[Made]) -> Iterator[Violation]:
    """Compare the rows with the calls that won for certain, and those that may have won."""
    for made in calls:
        if made.call.do == "history" and made.known:
            rows = Counter((key, outcome) for key, outcome in made.answer)
            yield from _judge(history, rows)


def _judge(history: History, rows: Counter[tuple[str, str]]) -> Iterator[Violation]:
    for key, operations in sorted(history.keys.items()):
        for do, outcome in OUTCOMES.items():
            of_kind = [each for each in operations if each.do == do]
            least = sum(each.answer is True for each in of_kind)
            most = least + sum(map(_may_have_won, of_kind))
            found = rows[key, outcome]
            if not least <= found <= most:
                words = f"{found} rows for {least} to {most} messages that were {outcome}"
                lines = (words, *map(str, of_kind))
                yield Violation(Broken.HISTORY, history.queue, key, "\n".join(lines))


def _may_have_won(operation: Operation) -> bool:
    return operation.answer is None
