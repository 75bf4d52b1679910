"""The contract on a queue in shards, without what needs one slot: crons and the history.

Messages with the same due time come in the order of insertion only within a shard, so the tests of
that order are left out too.
"""

from importlib import import_module

import pytest

MODULES = (
    "bad_input",
    "blocking_poll",
    "buried",
    "closing",
    "consumer",
    "drain",
    "expiry",
    "forecast",
    "giving_up",
    "headers",
    "isolation",
    "lease",
    "list",
    "offer",
    "offer_batch",
    "poll",
    "read_and_stats",
    "reschedule",
    "responses_of_consumers",
    "responses_waiting",
    "settle",
)
# These need one order of insertion over all messages.
ORDER = {
    "test_a_burial_is_revived_by_its_id_only_once_and_only_under_its_key",
    "test_a_delivery_acked_twice_at_once_leaves_the_places_of_the_others",
    "test_a_hundred_messages_are_listed_if_no_number_is_given",
    "test_a_lease_extended_after_its_end_gives_back_the_original_place_too",
    "test_a_lease_shorter_than_the_poll_interval_gives_back_the_original_place_too",
    "test_a_message_is_delivered_until_just_before_its_expiry",
    "test_a_message_may_be_rescheduled_for_earlier_than_any_that_was_claimed",
    "test_a_message_that_does_not_change_is_listed_once_whatever_others_do",
    "test_a_poll_goes_on_past_exhausted_messages",
    "test_a_poll_goes_on_past_undecodable_payloads",
    "test_a_poll_leases_at_most_its_limit",
    "test_a_poll_of_many_goes_on_past_undecodable_payloads",
    "test_a_shortened_lease_that_runs_out_gives_back_the_original_place",
    "test_a_thousand_messages_fit_on_a_page",
    "test_ack_many_counts_the_acks_that_won",
    "test_an_ack_touches_only_its_own_message",
    "test_an_expired_lease_of_another_consumer_is_found",
    "test_another_queue_object_goes_on_from_a_cursor",
    "test_as_many_run_at_once_as_asked_for",
    "test_consumers_get_disjoint_messages",
    "test_each_lease_that_runs_out_gives_back_its_original_place",
    "test_headers_travel_in_batches",
    "test_keys_that_look_alike_are_different_in_a_batch_too",
    "test_keys_that_look_alike_are_different_keys",
    "test_leases_that_a_clock_made_live_again_give_back_the_original_places_too",
    "test_messages_behind_a_long_row_of_leases_are_found",
    "test_messages_come_in_due_order_and_then_in_insertion_order",
    "test_more_burials_are_revived_than_one_transaction_takes",
    "test_neither_removes_the_others_messages",
    "test_of_burials_alike_in_everything_the_later_one_is_revived",
    "test_of_burials_alike_in_everything_the_one_with_the_id_is_revived",
    "test_one_burial_is_deleted",
    "test_the_insertion_order_is_kept",
    "test_ties_are_delivered_in_input_order",
    "test_what_is_due_is_returned_at_once",
}
# These need a history or crons.
ONE_SLOT = {
    "test_a_rescheduled_message_leaves_no_row_in_the_history",
    "test_each_leaves_a_row_when_many_expire",
    "test_it_leaves_a_row_in_the_history",
    "test_names_that_are_enums_are_what_they_stand_for",
    "test_ticks_of_a_moved_clock_are_handled",
}
LEFT_OUT = ORDER | ONE_SLOT

for _name in MODULES:
    for _each, _value in vars(import_module(f"duequeue.contract.test_{_name}")).items():
        if _each.startswith("test_") and _each not in LEFT_OUT:
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
