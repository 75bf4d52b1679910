"""Which scope each operation of the port needs; one that is not named here needs `admin`.

A development server believes what its clients say about the time and about the history, so that
their tests can move a clock. Every other server has a clock and settings of its own.
"""

from duequeue.port.remote import Call
from duequeue.server.dev_clock import DevClock
from duequeue.server.exchange import Exchange
from duequeue.server.problems import Problem
from duequeue.server.tokens import Scope

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
        "history.scheduled",
        "listed",
        "read",
        "settled",
    ),
}
# What may look at every message, row or burial, and so takes turns with other reads.
LONG_READS = frozenset(_SCOPES[Scope.READ]) - {"count_types", "examine", "read"}
_SCOPE_OF = {name: scope for scope, names in _SCOPES.items() for name in names}
_MAKING = frozenset({"offer", "cron.install"})
# These make or delete rows by the clock and the settings of their caller.
_OF_SERVER = frozenset({"delete_old", "notify", "prepare_history"})


def believes_clients(exchange: Exchange) -> bool:
    """Return whether the clocks and settings of clients count here."""
    return isinstance(exchange.service.queues.settings.clock, DevClock)


def may_create(exchange: Exchange, call: Call) -> bool:
    """Return whether an operation makes a queue that does not exist.

    On a development server, opening a queue makes it, as on any store.
    """
    return call.operation in _MAKING or believes_clients(exchange)


def check_call(exchange: Exchange, call: Call) -> None:
    """Raise unless the sender may run an operation."""
    if exchange.service.is_own(call.queue):
        raise Problem(403, "forbidden", "this queue belongs to the server itself")
    if call.operation == "kinds":
        return  # the answer has only the queues that the sender may use
    if call.operation in _OF_SERVER and not believes_clients(exchange):
        raise Problem(403, "forbidden", "the server does this by itself, with its own settings")
    if call.operation == "open":  # which anybody may who may do anything with a queue
        if not exchange.grant.allows_something(call.queue):
            detail = f"the token allows nothing on the queue {call.queue!r}"
            raise Problem(403, "forbidden", detail)
        return
    exchange.check(_SCOPE_OF.get(call.operation, Scope.ADMIN), call.queue)
