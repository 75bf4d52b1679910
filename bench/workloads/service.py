"""The service over HTTP beside the library in one process, and beside a route that does nothing."""

from bench.contender import Contender
from bench.workload import Outcome, Workload, percentiles, rate

CONNECTIONS = 64


def offer_hundreds(contender: Contender, messages: int) -> Outcome:
    """Offer lists of a hundred messages."""
    return rate(messages, contender.offer_hundreds(messages))


def take_hundreds(contender: Contender, messages: int) -> Outcome:
    """Poll and settle a hundred messages at a time."""
    contender.load(messages)
    return rate(messages, contender.take_hundreds(messages))


def offer_connected(contender: Contender, messages: int) -> Outcome:
    """Offer single messages on many connections."""
    return rate(messages, contender.offer_connected(messages, CONNECTIONS))


def idle(contender: Contender, clients: int) -> Outcome:
    """Measure what waiting polls cost while nothing is due."""
    return Outcome({"% of a core": 100 * contender.share_when_idle(clients)})


def wake(contender: Contender, clients: int) -> Outcome:
    """Measure how late waiting polls are answered."""
    return percentiles(contender.wake(clients))


WORKLOADS = [
    Workload(
        "service-offer-100",
        "Offer lists of a hundred",
        "Four callers offer a hundred messages at a time.",
        "offer_hundreds",
        offer_hundreds,
        full=40_000,
        quick=10_000,
    ),
    Workload(
        "service-take-100",
        "Poll and settle a hundred",
        "Four callers take a hundred messages at a time. Over HTTP, each poll acks the hundred "
        "before it.",
        "take_hundreds",
        take_hundreds,
        full=40_000,
        quick=10_000,
    ),
    Workload(
        "service-offer-64",
        "Offer one, 64 connections",
        "Each of 64 connections offers one message after the other, and each is stored before its "
        "answer.",
        "offer_connected",
        offer_connected,
        full=20_000,
        quick=5_000,
    ),
    Workload(
        "service-idle",
        "Long polls with nothing to do",
        "How much a server computes for the polls that wait.",
        "share_when_idle",
        idle,
        full=1000,
        better="less",
        rounds=1,
    ),
    Workload(
        "service-wake",
        "Lateness of long polls",
        "As many polls wait as messages fall due, over five seconds; the time from the due instant "
        "to the answer at the client.",
        "wake",
        wake,
        full=1000,
        better="less",
        rounds=1,
    ),
]
