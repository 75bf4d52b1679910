"""The contract on a queue in shards, without what needs one slot: crons and the history.

Messages with the same due time come in the order of insertion only within a shard, so the tests of
that order are left out too.
"""

from importlib import import_module

import pytest

# Between them, these reach every line that divides a call among shards, or puts their answers
# together. The other modules ask for the same operations, by rules that do not know of shards.
MODULES = (
    "buried",  # burials of all shards in one order, and in pages
    "expiry",  # what has expired, taken from each shard alike
    "forecast",  # counts, added up
    "list",  # pages, merged, and their cursors
    "losses",  # what a poll gives back
    "offer_batch",  # outcomes in the order of the input
    "poll",  # what is due first, wherever it is
    "responses_waiting",  # answers, and wake-ups for them
    "settle",  # leases, each settled where it is
)
# These need one order of insertion over all messages.
ORDER = {
    "test_a_burial_is_revived_by_its_id_only_once_and_only_under_its_key",
    "test_a_hundred_messages_are_listed_if_no_number_is_given",
    "test_a_message_is_delivered_until_just_before_its_expiry",
    "test_a_message_that_does_not_change_is_listed_once_whatever_others_do",
    "test_a_poll_leases_at_most_its_limit",
    "test_a_thousand_messages_fit_on_a_page",
    "test_ack_many_counts_the_acks_that_won",
    "test_an_ack_touches_only_its_own_message",
    "test_another_queue_object_goes_on_from_a_cursor",
    "test_consumers_get_disjoint_messages",
    "test_messages_behind_a_long_row_of_leases_are_found",
    "test_messages_come_in_due_order_and_then_in_insertion_order",
    "test_more_burials_are_revived_than_one_transaction_takes",
    "test_of_burials_alike_in_everything_the_later_one_is_revived",
    "test_of_burials_alike_in_everything_the_one_with_the_id_is_revived",
    "test_one_burial_is_deleted",
    "test_the_messages_of_a_claim_are_counted_one_by_one",
    "test_ties_are_delivered_in_input_order",
}
# These need a history.
ONE_SLOT = {
    "test_each_leaves_a_row_when_many_expire",
    "test_it_leaves_a_row_in_the_history",
}
LEFT_OUT = ORDER | ONE_SLOT

for _name in MODULES:
    for _each, _value in vars(import_module(f"duequeue.contract.test_{_name}")).items():
        _marks = {mark.name for mark in getattr(_value, "pytestmark", ())}
        if _each in LEFT_OUT or "argument_checks" in _marks:
            continue
        if _each.startswith("test_"):
            globals()[f"{_each}_{_name}"] = _value
        elif type(_value).__name__ == "FixtureFunctionDefinition":
            globals()[_each] = _value


@pytest.fixture
def store() -> str:
    """The only store here."""
    return "redis"


@pytest.fixture
def store_url(redis_url: str) -> str:
    """An empty database, in which each queue has four shards."""
    return f"{redis_url}?shards=4"


@pytest.fixture
def shared_url(store_url: str) -> str:
    """The same; its messages outlive this process."""
    return store_url
