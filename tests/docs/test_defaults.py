"""What the documentation says about defaults is what `defaults.py` says."""

import argparse
import inspect
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from duequeue import Backoff, Queue, defaults
from duequeue.cli.commands import COMMANDS
from duequeue.cli.parsing import parser_for
from duequeue.durations import duration_text
from tests.docs.pages import DOCS, ROOT

WORDS = {timedelta(minutes=1): "one minute", timedelta(seconds=30): "thirty seconds"}
WORDS |= {timedelta(minutes=5): "five minutes", timedelta(seconds=3): "3 seconds"}
WORDS |= {timedelta(hours=1): "1 hour", timedelta(days=30): "30 days"}


def minutes(span: timedelta) -> int:
    return span // timedelta(minutes=1)


def of(*names: str) -> str:
    """How a page words these defaults."""
    return " and ".join(WORDS[getattr(defaults, name)] for name in names)


SENTENCES = {
    "reference/api.md": (
        f"means {minutes(defaults.LEASE)} minutes",
        f"and {minutes(defaults.CONSUMER_LEASE)} for consumers",
        f"no limit for polls, and {defaults.CONSUMER_MAX_ATTEMPTS} for consumers",
        f"poll_interval: timedelta = timedelta(seconds={defaults.POLL_INTERVAL.seconds})",
        f"after=None, limit={defaults.PAGE})",
        f"history(limit={defaults.PAGE}, key=None)",
        f"| `concurrency` | {defaults.CONCURRENCY} |",
        f"| `batch` | {defaults.BATCH} |",
        f"| `max_attempts` | the queue's, or {defaults.CONSUMER_MAX_ATTEMPTS} |",
        f"or {minutes(defaults.CONSUMER_LEASE)} minute | how long messages wait after a crash",
        f"| `keep` | {of('KEEP')} |",
        f"stop(grace={defaults.GRACE.seconds} s)",
    ),
    "guides/writing-a-handler.md": (
        f"| `concurrency` | {defaults.CONCURRENCY} |",
        f"| `batch` | {defaults.BATCH} |",
        f"| `max_attempts` | the queue's own, or {defaults.CONSUMER_MAX_ATTEMPTS} |",
        f"or {minutes(defaults.CONSUMER_LEASE)} minute | how long messages wait after a crash",
    ),
    "guides/callbacks.md": (
        f"| `timeout` | `--timeout` | `{duration_text(defaults.CALL_TIMEOUT)}` |",
        f"| `concurrency` | `--concurrency` | {defaults.CALL_CONCURRENCY} |",
        f"| `attempts` | `--attempts` | {defaults.CALL_ATTEMPTS} |",
        f"| `backoff` | `--backoff` | `{defaults.CALL_BACKOFF}` |",
        f"| no, `{duration_text(defaults.KEEP)}` |",
        f"| `type` | `--type` | `{defaults.CALL_TYPE}` |",
        f"{defaults.CALLS:,} by default",
        f"`--grace`, {defaults.GRACE.seconds} seconds by default",
    ),
    "guides/retries-and-buried-messages.md": (
        f"| `first` | {Backoff().first.seconds} second |",
        f"| `factor` | {Backoff().factor:g} |",
        f"| `longest` | {Backoff().longest // timedelta(hours=1)} hour |",
        f"after {defaults.CONSUMER_MAX_ATTEMPTS} attempts",
    ),
    "guides/deploying-workers.md": (
        f"by default {of('CONSUMER_LEASE')}",
        f"by default after {defaults.CONSUMER_MAX_ATTEMPTS} attempts",
    ),
    "guides/coming-from.md": (
        f"by default {minutes(defaults.LEASE)} minutes after a poll",
        f"and {minutes(defaults.CONSUMER_LEASE)} minute in a consumer",
    ),
    "guides/long-handlers.md": (f"The default is {of('GRACE')}",),
    "guides/looking-inside.md": (f"from 1 to {defaults.LONGEST_PAGE}; {defaults.PAGE} by default",),
    "guides/redis-and-mysql.md": (f"`poll_interval`, which is {of('POLL_INTERVAL')}",),
    "guides/server.md": (
        f"`--drain`, by default {of('DRAIN')}",
        f"for {of('HISTORY')}. `--keep-history 0` turns that off",
    ),
    "protocol.md": (
        f"{of('KEEP')} by default, counted from the answer",
        f"`grace` to end, {defaults.GRACE.seconds} seconds by default",
        f"or else for {of('CONSUMER_LEASE')}.",
    ),
    "tutorial.md": (f"nobody else gets the message for {of('LEASE')}",),
    "reference/cli.md": (
        f"`--timeout {duration_text(defaults.CALL_TIMEOUT)}`",
        f"`--concurrency {defaults.CALL_CONCURRENCY}`",
        f"`--attempts {defaults.CALL_ATTEMPTS}`, `--backoff {defaults.CALL_BACKOFF}`",
        f"`--keep {duration_text(defaults.KEEP)}`, `--type {defaults.CALL_TYPE}`",
        f"`--overlap {duration_text(defaults.OVERLAP)}`",
        f"`--until WHEN` ({duration_text(defaults.FORECAST_UNTIL)})",
        f"`--bucket DURATION` ({duration_text(defaults.FORECAST_BUCKET)})",
        f"`-n {defaults.FEW}` rows to begin with",
    ),
    "guides/spark.md": (f"| `lease` | stream in | `{minutes(defaults.LEASE)} minutes` |",),
}


@pytest.mark.parametrize(
    ("page", "sentence"),
    [(page, sentence) for page, sentences in SENTENCES.items() for sentence in sentences],
)
def test_a_page_states_the_default(page: str, sentence: str) -> None:
    text = " ".join((DOCS / page).read_text("utf-8").split())
    assert sentence in text


def test_the_reference_shows_the_signature_of_open() -> None:
    shown = (DOCS / "reference" / "api.md").read_text("utf-8").partition("Queue.open(")[2]
    listed = re.findall(
        r"^    (\w+): .* = (.+?),\s+#", shown.partition(") -> Queue")[0], re.MULTILINE
    )
    interval = f"timedelta(seconds={defaults.POLL_INTERVAL.seconds})"
    taken = inspect.signature(Queue.open).parameters
    assert dict(listed) == {
        name: interval if each.default is defaults.POLL_INTERVAL else str(each.default)
        for name, each in taken.items()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }


def options() -> Iterator[tuple[str, str, str]]:
    """The options of commands whose help texts state a number, with what they state."""
    for place, parser in parsers("", parser_for([command.name for command in COMMANDS])):
        for action in parser._actions:  # noqa: SLF001 - argparse has no other way to look at them
            text = (action.help or "").replace("%(default)s", str(action.default))
            stated = re.search(r"\(default: ([^)]*\d[^)]*)\)", text)
            for name in action.option_strings:
                if stated and name.startswith("--"):
                    yield place, name, stated[1]


def parsers(
    place: str, parser: argparse.ArgumentParser
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield place, parser
    for action in parser._actions:  # noqa: SLF001 - likewise
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            for name, each in action.choices.items():
                yield from parsers(f"{place} {name}".strip(), each)


NUMBER = re.compile(r"\b\d[\w.:]*")


@pytest.mark.parametrize(("place", "name", "stated"), sorted(set(options())))
def test_the_reference_states_the_default_of_an_option(place: str, name: str, stated: str) -> None:
    page = (DOCS / "reference" / "cli.md").read_text("utf-8")
    rows = re.findall(rf"^\| `{name}\b[^|]*\|([^|]*)\|", page, re.MULTILINE)
    mentions = re.findall(rf"`{name}(?: [A-Z]+)?`? ?\(?([\w.:]+)", page)
    assert any(NUMBER.findall(stated)[0] in NUMBER.findall(each) for each in (*rows, *mentions)), (
        f"{place} {name} has the default {stated}"
    )


def test_the_changes_state_the_defaults() -> None:
    text = " ".join((ROOT / "CHANGELOG.md").read_text("utf-8").split())
    assert (
        f"leases for {minutes(defaults.LEASE)} minutes, "
        f"and in consumers for {minutes(defaults.CONSUMER_LEASE)} minute"
    ) in text
