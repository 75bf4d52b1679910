"""Which scope each operation of the port needs; one that is not named here needs `admin`."""

from duequeue.port.remote import Call
from duequeue.server.exchange import Exchange
from duequeue.server.problems import Problem
from duequeue.server.tokens import Grant, Scope

_SCOPES = {
    Scope.OFFER: ("offer", "drop", "reschedule", "response", "forget_response"),
    Scope.POLL: ("claim", "claim_expired", "expire", "next_due", "earliest_due"),
    Scope.SETTLE: ("ack", "answer", "bury", "extend", "give_back", "release"),
    Scope.READ: (
        "burials.last",
        "burials.listed",
        "count_types",
        "counts",
        "examine",
        "cron.listing",
        "forecast",
        "history.burial_reasons",
        "history.day_bounds",
        "history.day_rows",
        "history.days",
        "history.kinds",
        "history.scheduled",
        "listed",
        "read",
        "settled",
    ),
}
_SCOPE_OF = {name: scope for scope, names in _SCOPES.items() for name in names}
# Anybody who may do anything with a queue may open it.
_ANY_SCOPE = frozenset({"open", "prepare_history"})


def may_create(grant: Grant, queue: str) -> bool:
    """Return whether a sender may create a queue by opening it."""
    return grant.allows(Scope.OFFER, queue) or grant.allows(Scope.POLL, queue)


def check_call(exchange: Exchange, call: Call) -> None:
    """Raise unless the sender may run an operation."""
    if exchange.service.is_own(call.queue):
        raise Problem(403, "forbidden", "this queue belongs to the server itself")
    if call.operation == "kinds":
        return  # the answer has only the queues that the sender may use
    if call.operation in _ANY_SCOPE:
        if not exchange.grant.allows_something(call.queue):
            detail = f"the token allows nothing on the queue {call.queue!r}"
            raise Problem(403, "forbidden", detail)
        return
    exchange.check(_SCOPE_OF.get(call.operation, Scope.ADMIN), call.queue)
