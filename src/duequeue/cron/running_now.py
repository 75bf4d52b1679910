"""One extra message of a cron, due now."""

import secrets
from datetime import datetime
from functools import partial
from typing import TypeVar

from duequeue.cron.plans import Plan
from duequeue.drive.actions import Flow
from duequeue.errors import InvalidArgument
from duequeue.flows import offering
from duequeue.flows.context import Context
from duequeue.instants import from_millis
from duequeue.port.cron_table import Standing
from duequeue.schedules.tick import checked_prefix

T = TypeVar("T")


def run_now(context: Context[T], prefix: str, plan: Plan | None) -> Flow[bool]:
    """Offer the message that a tick at this instant would have; `plan` is the one installed here.

    It is a message like any other. No cron removes or repeats it, because its key is random.
    """
    checked_prefix(prefix)
    if plan is None:
        raise InvalidArgument(
            "prefix",
            text=f"cron {prefix!r} is not installed through this queue object, which therefore "
            "does not know its payload: install it here first, or offer the message yourself",
        )
    at = from_millis(context.now())
    return _run_now(context, plan, at, plan.payload_for(at))


def _run_now(context: Context[T], plan: Plan, at: datetime, payload: T) -> Flow[bool]:
    prefix, config_hash = plan.prefix, plan.config_hash.text
    look = partial(context.store.cron.look, prefix, config_hash, context.now())
    standing = (yield from context.run(look)).row.standing(config_hash)
    if standing in (Standing.REPLACED, Standing.UNINSTALLED):
        return False
    key = run_now_key(prefix, at)
    yield from offering.offer(context, key, payload, None, replace=False, headers=plan.headers)
    return True


def run_now_key(prefix: str, at: datetime) -> str:
    """Return a key that no tick has, because it ends in random digits and not in a time."""
    time = at.isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"{prefix}/run-now/{time}Z/{secrets.token_hex(8)}"
