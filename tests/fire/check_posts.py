"""The verdict on a round of callbacks, whose logs have the offers and every post.

A post that its endpoint could not finish may have been answered well, because its last line may be
missing.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.fire.checker import Verdict
from tests.fire.logs import Logs, Made, read_logs
from tests.fire.violations import Broken, Violation

GOOD = 200
# A push process settles within this time, in microseconds, unless something happens to it.
SETTLES_WITHIN = 5_000_000


def check_posts(folder: Path) -> Verdict:
    """Judge the logs in a folder."""
    logs = read_logs(folder)
    offers, posts = defaultdict[str, list[Made]](list), defaultdict[str, list[Made]](list)
    verdict = Verdict(calls=len(logs.calls), unknown=sum(not made.known for made in logs.calls))
    for made in sorted(logs.calls, key=lambda made: made.began):
        by_key = {"offer": offers, "post": posts}.get(made.call.do)
        if by_key is not None:
            by_key[made.call.key].append(made)
        elif made.call.do == "leftover":
            verdict.violations += [_violation(Broken.STUCK, key, []) for key in made.answer]
    verdict.keys = len(offers)
    for key, of_key in offers.items():
        found = _judge(of_key, posts[key], logs)
        verdict.violations += [_violation(broken, key, [*of_key, *posts[key]]) for broken in found]
    return verdict


def _judge(offers: list[Made], posts: list[Made], logs: Logs) -> Iterator[Broken]:
    if all(offer.known for offer in offers) and not _arrived(offers[-1], posts):
        yield Broken.LOST
    earliest = min(offer.call.due for offer in offers)
    if any(post.clock_low < earliest for post in posts):
        yield Broken.EARLY
    if not all(post.call.facts["signed"] for post in posts):
        yield Broken.OUTCOME
    names = [(post.call.facts["id"], post.call.facts["attempt"]) for post in posts]
    if len(set(names)) < len(names):
        yield Broken.ATTEMPT
    if any(_again(post, posts) for post in posts if _settled(post, logs)):
        yield Broken.CAME_BACK


def _arrived(offer: Made, posts: list[Made]) -> bool:
    """Return whether a post of this content may have been answered well."""
    body = f'"{offer.call.payload}"'
    return any(post.call.payload == body and post.answer in {GOOD, None} for post in posts)


def _settled(post: Made, logs: Logs) -> bool:
    """Return whether a post was answered well, and nothing kept its push process from settling."""
    if post.answer != GOOD:
        return False
    until = post.ended + SETTLES_WITHIN
    return not any(window.meets(post.began, until, "") for window in logs.windows)


def _again(post: Made, posts: list[Made]) -> bool:
    """Return whether the same message was posted when it must have been settled."""
    return any(
        other.call.facts["id"] == post.call.facts["id"]
        and other.began > post.ended + SETTLES_WITHIN
        for other in posts
    )


def _violation(broken: Broken, key: str, made: list[Made]) -> Violation:
    lines = [f"{each.began / 1e6:.6f} {each.call} -> {each.answer}" for each in made]
    return Violation(broken, "callbacks", key, "\n".join(lines))
