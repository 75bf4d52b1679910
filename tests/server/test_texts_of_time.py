"""Durations, instants and backoffs have one grammar and one text of refusal everywhere."""

from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import NamedTuple

import httpx
import msgspec
import pytest

from duequeue import Backoff, InvalidArgument
from duequeue.callbacks.answer import CallAnswer, Kept, meaning_of
from duequeue.cli.numbered_lines import BadLine, lines_of
from duequeue.cli.parsing import parser_for
from duequeue.durations import parse_duration
from duequeue.instants import MILLISECOND, parse_instant
from duequeue.spark.options import parse

REFUSED = ["", "soon", "5 weeks", "1:2", "5m3", "0x5", "1e3", "9" * 30 + "d", "x" * 200]
ACCEPTED = [
    "90",
    "1.5m",
    "90 seconds",
    "90s",
    "90000ms",
    "1.5 Minutes",
    "0.025h",
    "90000 milliseconds",
]
MEANT = timedelta(seconds=90)
BAD_BACKOFFS = [
    "",
    "soon",
    "1s:soon",
    "1s:1h:x",
    "1s:1h:2:3",
    "1s,1h,,",
    "-1s",
    "1s:0s",
    "1s:1h:0.5",
]
URL = "https://shop.example.com/"


class Doors(NamedTuple):
    """The places where a text can be written; each returns what it means, or a refusal."""

    http: httpx.Client
    queue: str

    def python(self, text: str) -> object:
        try:
            return parse_duration(text)
        except InvalidArgument as error:
            return str(error)

    def command_line(self, text: str) -> object:
        return parsed(["worker", "handlers", f"--lease={text}"], "lease")

    def spark(self, text: str) -> object:
        try:
            options = parse({"url": "sqlite:////queues/spans.db", "queue": "q", "lease": text})
        except InvalidArgument as error:
            return str(error)
        return options.lease * MILLISECOND

    def callback(self, text: str) -> object:
        meant = meaning_of(CallAnswer(202, {"duequeue-extend": text}, b""), 0)
        return meant.lease if isinstance(meant, Kept) else str(meant)

    def body(self, text: str) -> object:
        return self._offered(self.http.post(self._messages, json={"key": "a", "delay": text}))

    def query(self, text: str) -> object:
        return self._offered(self.http.put(f"{self._messages}/a", params={"delay": text}))

    def header(self, text: str) -> object:
        headers = {"DueQueue-Delay": text}
        return self._offered(self.http.put(f"{self._messages}/a", headers=headers))

    def expiry(self, text: str) -> object:
        """What may also be an instant, so a refusal has words of its own."""
        return self._offered(self.http.put(f"{self._messages}/a", params={"expires": text}))

    def endpoint(self, text: str) -> object:
        answer = self._defined(timeout=text)
        return timedelta(seconds=answer.json()["timeout"]) if answer.is_success else refusal(answer)

    def backoff_of_python(self, text: str) -> object:
        try:
            return Backoff.parse(text)
        except InvalidArgument as error:
            return str(error)

    def backoff_of_command_line(self, text: str) -> object:
        return parsed(["worker", "handlers", f"--backoff={text}"], "backoff")

    def backoff_of_endpoint(self, text: str) -> object:
        answer = self._defined(backoff=text)
        if not answer.is_success:
            return refusal(answer)
        found = answer.json()["backoff"]
        first, longest = (timedelta(seconds=found[each]) for each in ("first", "longest"))
        return Backoff(first, longest, found["factor"])

    @property
    def _messages(self) -> str:
        return f"/v1/queues/{self.queue}/messages"

    def instant_of_command_line(self, text: str) -> object:
        return parsed(["offer", "a", "--url=memory:a", f"--due={text}"], "due")

    def instant_of_a_file(self, text: str) -> object:
        line = msgspec.json.encode({"key": "a", "payload": 1, "due_at": text})
        try:
            (found,) = lines_of([line], 0)
        except BadLine as error:
            return str(error)
        return found.due_at

    def instant_of_query(self, text: str) -> object:
        return self._due(self.http.put(f"{self._messages}/a", params={"due_at": text}))

    def instant_of_header(self, text: str) -> object:
        return self._due(self.http.put(f"{self._messages}/a", headers={"DueQueue-Due-At": text}))

    def _due(self, answer: httpx.Response) -> object:
        if not answer.is_success:
            return refusal(answer)
        return datetime.fromisoformat(self.http.get(f"{self._messages}/a").json()["due_at"])

    def _defined(self, **more: str) -> httpx.Response:
        definition = {"queue": self.queue, "url": URL, **more}
        return self.http.put(f"/v1/endpoints/{self.queue}", json=definition)

    def _offered(self, answer: httpx.Response) -> object:
        """A server does not say what a delay means to it, so this says only whether it does."""
        return MEANT if answer.is_success else refusal(answer)


DURATIONS: list[Callable[[Doors, str], object]] = [
    Doors.python,
    Doors.command_line,
    Doors.spark,
    Doors.callback,
    Doors.body,
    Doors.query,
    Doors.header,
    Doors.endpoint,
]
INSTANTS: list[Callable[[Doors, str], object]] = [
    Doors.instant_of_command_line,
    Doors.instant_of_a_file,
    Doors.instant_of_query,
    Doors.instant_of_header,
]
BACKOFFS: list[Callable[[Doors, str], object]] = [
    Doors.backoff_of_python,
    Doors.backoff_of_command_line,
    Doors.backoff_of_endpoint,
]


def parsed(words: list[str], name: str) -> object:
    said = StringIO()
    try:
        with redirect_stderr(said):
            return getattr(parser_for(words[:1]).parse_args(words), name)
    except SystemExit:
        return said.getvalue()


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 422
    return str(answer.json()["detail"])


@pytest.fixture
def doors(http: httpx.Client, name: str) -> Iterator[Doors]:
    yield Doors(http, name)
    http.delete(f"/v1/endpoints/{name}")


@pytest.mark.parametrize("text", ACCEPTED)
@pytest.mark.parametrize("door", [*DURATIONS, Doors.expiry], ids=lambda each: each.__name__)
def test_a_duration_means_the_same_everywhere(
    doors: Doors, door: Callable[[Doors, str], object], text: str
) -> None:
    assert door(doors, text) == MEANT


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("door", DURATIONS, ids=lambda each: each.__name__)
def test_what_is_not_a_duration_is_refused_in_the_same_words(
    doors: Doors, door: Callable[[Doors, str], object], text: str
) -> None:
    words = doors.python(text)
    assert isinstance(words, str)
    said = door(doors, text)
    assert isinstance(said, str)
    assert words in said


INSTANT = datetime(2030, 1, 31, 8, 0, 0, 250_000, tzinfo=UTC)
BAD_INSTANTS = [
    "soon",
    "2030-01-31",
    "2030-01-31T09:00",
    "2030-02-31T09:00Z",
    "0001-01-01T00:00+14:00",
    "x" * 200,
]


@pytest.mark.parametrize(
    "text", ["2030-01-31T09:00:00.250+01:00", "20300131T080000.2509Z", "2030-01-31 08:00:00.25Z"]
)
@pytest.mark.parametrize("door", INSTANTS, ids=lambda each: each.__name__)
def test_an_instant_means_the_same_everywhere(
    doors: Doors, door: Callable[[Doors, str], object], text: str
) -> None:
    assert door(doors, text) == INSTANT


@pytest.mark.parametrize("text", BAD_INSTANTS)
@pytest.mark.parametrize("door", INSTANTS, ids=lambda each: each.__name__)
def test_what_is_not_an_instant_is_refused(
    doors: Doors, door: Callable[[Doors, str], object], text: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_instant(text)
    said = door(doors, text)
    assert isinstance(said, str)
    # On the command line it might have been a time from now.
    assert str(refused.value) in said or "neither a time from now" in said


@pytest.mark.parametrize("text", ["10s:1d:5", "10s,1d,5", "10000ms: 24 hours :5.0"])
@pytest.mark.parametrize("door", BACKOFFS, ids=lambda each: each.__name__)
def test_a_backoff_means_the_same_everywhere(
    doors: Doors, door: Callable[[Doors, str], object], text: str
) -> None:
    assert door(doors, text) == Backoff(timedelta(seconds=10), timedelta(days=1), 5.0)


@pytest.mark.parametrize("text", BAD_BACKOFFS)
@pytest.mark.parametrize("door", BACKOFFS, ids=lambda each: each.__name__)
def test_what_is_not_a_backoff_is_refused_in_the_same_words(
    doors: Doors, door: Callable[[Doors, str], object], text: str
) -> None:
    words = doors.backoff_of_python(text)
    assert isinstance(words, str)
    said = door(doors, text)
    assert isinstance(said, str)
    assert words.partition(", not datetime.")[0] in said
