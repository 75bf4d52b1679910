"""What the examinations of all servers judge in the same way."""

from duequeue.instants import MILLISECOND, words_for
from duequeue.port.examining import Finding, Level

WORRYING_SKEW, BAD_SKEW = 1000, 60_000
CROWDED = 0.8


def judge_clock(ahead: int) -> Finding:
    """Judge how far the clock of the server is ahead of ours, in milliseconds."""
    direction = "ahead of" if ahead >= 0 else "behind"
    text = f"The clock of the server is {words_for(abs(ahead) * MILLISECOND)} {direction} ours."
    if abs(ahead) < WORRYING_SKEW:
        return Finding(Level.OK, "clock", text)
    advice = (
        "Synchronise the clocks of all machines, because consumers decide by theirs what is due."
    )
    level = Level.ADVICE if abs(ahead) < BAD_SKEW else Level.PROBLEM
    return Finding(level, "clock", text, advice)


def judge_connections(used: int, most: int, advice: str) -> Finding:
    """Judge how many of the connections that a server allows are in use."""
    text = f"{used} of {most} connections are in use."
    if used >= CROWDED * most:
        return Finding(Level.ADVICE, "connections", text, advice)
    return Finding(Level.OK, "connections", text)
