"""Every sentence of SECURITY.md about DueQueue is checked by the tests that this table names.

If you change a sentence or add one, name the tests that would fail if it were not true.
"""

import ast
import re
from functools import cache

import pytest

from tests.docs.pages import ROOT

PROMISES = "## What DueQueue does with secrets"  # the sections before it are about reports
CONTRACT = "src/duequeue/contract"

DEFECTS = f"{CONTRACT}/test_known_defects.py"
MATERIALS = "tests/architecture/test_bill_of_materials.py"
PUSH = "tests/callbacks/test_push_process.py"
CONNECTIONS = "tests/server/test_connections.py"
HANDSHAKES = "tests/server/test_handshakes.py"
SERVER = "tests/server/test_security.py"
OWN_TOKEN = "tests/server/test_own_token.py"
ENDPOINTS = "tests/server/test_endpoints.py"
MOUNTING = "tests/server/test_mounting.py"
PORT = "tests/server/test_port_scopes.py"
HEADS = "tests/server/test_heads.py"
MISSING = "tests/server/test_missing_queues.py"
MESSAGES = "tests/unit/test_security_page.py"
ROLES = "tests/servers/test_roles.py"

# How each sentence begins, and the tests that check it.
CHECKED: dict[str, tuple[str, ...]] = {
    "The password of a URL and the token of a server": (
        "tests/unit/test_backends.py::test_what_is_wrong_with_a_url_is_said_without_its_password",
        "tests/unit/test_mariadb_settings.py::test_no_password_is_ever_shown",
        "tests/unit/test_redis_settings.py::test_no_password_is_ever_shown",
        "tests/race/test_outage.py::test_a_server_that_is_gone_is_named_and_its_password_is_not",
        "tests/cli/test_worker_arguments.py::test_a_password_is_not_printed",
        f"{DEFECTS}::test_the_password_is_not_in_the_repr_of_an_open_call_that_failed",
        f"{SERVER}::test_neither_payloads_nor_tokens_are_logged",
        f"{OWN_TOKEN}::test_the_next_start_keeps_the_token",
        "tests/cli/test_token.py::test_create_list_and_revoke",
        "tests/server/test_stopping.py::test_dev_has_a_token_and_a_clock",
    ),
    "The secrets that sign callbacks are stored": (
        f"{ENDPOINTS}::test_a_new_endpoint_gets_a_secret_that_is_shown_once",
    ),
    "They are printed or returned once": (
        f"{ENDPOINTS}::test_a_new_endpoint_gets_a_secret_that_is_shown_once",
        f"{ENDPOINTS}::test_a_secret_of_ones_own_is_never_shown",
        "tests/cli/test_endpoint.py::test_a_secret_comes_from_a_file_and_is_never_shown",
        "tests/callbacks/test_signing.py::test_a_secret_never_shows",
    ),
    "Clients of a server cannot open the queue": (
        f"{ENDPOINTS}::test_nobody_reads_the_stored_secrets",
    ),
    "The commands can take the URL from": (
        "tests/cli/test_config.py::test_the_nearest_default_counts",
    ),
    "`Queue` keeps the URL in memory": (
        "tests/race/test_outage.py::test_a_queue_outlives_a_restart",
    ),
    "Keys, queue names, due times and the reasons": (
        "tests/unit/test_events.py::test_events_are_logged_with_their_fields",
    ),
    "They appear in logs, in spans and in the history": (
        "tests/unit/test_events.py::test_events_are_logged_with_their_fields",
        "tests/unit/test_telemetry.py::test_a_handler_goes_on_where_the_message_was_offered",
        f"{CONTRACT}/test_history.py::test_an_ack_tells_everything",
    ),
    "A reason may hold the traceback of a handler": (
        f"{CONTRACT}/test_consumer.py::test_the_last_attempt_is_buried_with_its_traceback",
        f"{CONTRACT}/test_giving_up.py::test_an_undecodable_payload_is_buried_with_the_reason",
    ),
    "Apart from that, the library writes payloads": (
        f"{MESSAGES}::test_payloads_and_headers_go_only_to_the_store",
    ),
    "The commands print them, and a server sends them": (
        f"{SERVER}::test_a_scope_allows_its_requests_and_no_others",
    ),
    "DueQueue does not encrypt messages": (f"{MESSAGES}::test_a_message_is_stored_as_it_is",),
    "The codecs of DueQueue read JSON, text and bytes": (
        "tests/unit/test_codec.py::test_what_cannot_be_decoded_is_a_value_error",
        f"{MESSAGES}::test_the_library_does_not_unpickle_and_runs_no_text",
    ),
    "There is no pickle in the library": (
        f"{MESSAGES}::test_the_library_does_not_unpickle_and_runs_no_text",
    ),
    "A typed codec checks each field": (
        f"{CONTRACT}/test_codecs.py::test_a_wrong_field_is_refused_at_the_offer",
        "tests/unit/test_payload_types.py::test_a_wrong_field_is_named_but_its_value_is_not_shown",
    ),
    "A consumer buries a payload that it cannot decode": (
        f"{CONTRACT}/test_consumer.py::test_what_cannot_be_decoded_does_not_hold_up_the_rest",
    ),
    "A payload has at most 8 MiB": (
        "tests/unit/test_refusals.py::test_a_payload_that_is_too_large_is_a_refused_argument",
    ),
    "A server without a file of tokens needs the token": (
        f"{OWN_TOKEN}::test_nobody_gets_in_without_the_token",
        f"{OWN_TOKEN}::test_the_next_start_keeps_the_token",
    ),
    "Only the user who started it can read that token": (
        f"{OWN_TOKEN}::test_only_its_owner_may_read_the_file",
        f"{OWN_TOKEN}::test_a_token_that_others_could_read_is_refused",
        f"{OWN_TOKEN}::test_clients_and_commands_of_the_same_user_find_the_token",
        f"{OWN_TOKEN}::test_a_token_goes_only_to_the_port_of_this_machine_that_it_was_made_for",
    ),
    "So neither another user, nor a proxy": (
        f"{OWN_TOKEN}::test_nobody_gets_in_without_the_token",
        f"{OWN_TOKEN}::test_another_user_does_not_find_it",
    ),
    "It refuses to start on an address that other machines": (
        f"{OWN_TOKEN}::test_another_address_still_needs_a_file_of_tokens",
    ),
    "While such a server is stopped, another user": (
        f"{OWN_TOKEN}::test_another_listener_on_the_port_of_a_stopped_server_gets_its_token",
    ),
    "Nobody else can connect to the socket": (
        f"{OWN_TOKEN}::test_a_unix_socket_is_for_its_owner_and_is_removed_at_the_end",
    ),
    "With `--dev`, a server on this machine needs no token": (
        f"{OWN_TOKEN}::test_dev_needs_no_token_and_says_in_red_that_it_is_open",
    ),
    "It refuses requests that a web page of another site sends": (
        f"{OWN_TOKEN}::test_dev_needs_no_token_and_says_in_red_that_it_is_open",
        f"{SERVER}::test_without_tokens_a_web_page_cannot_call",
    ),
    "An app of `app_for` with neither": (
        "tests/server/test_hostile_calls.py::test_without_a_token_only_this_machine_may_call",
    ),
    "A proxy on that machine can pass on requests": (
        f"{MOUNTING}::test_a_plain_proxy_passes_requests_on_to_an_app_without_tokens",
    ),
    "A server that is mounted with `trusted=True`": (
        f"{MOUNTING}::test_behind_cookies_another_site_can_only_read",
    ),
    "The file of tokens holds a SHA-256": (
        f"{SERVER}::test_the_file_has_hashes_and_belongs_to_its_owner",
    ),
    "A token has scopes, and can have a prefix": (
        f"{SERVER}::test_a_scope_allows_its_requests_and_no_others",
        f"{SERVER}::test_lists_show_only_what_the_prefix_allows",
        f"{SERVER}::test_expired_and_revoked_tokens_are_refused",
    ),
    "The server compares tokens in constant time": (
        f"{SERVER}::test_every_token_is_compared_by_its_whole_hash",
        f"{SERVER}::test_a_token_file_that_cannot_be_read_lets_nobody_in",
    ),
    "It refuses a token within a second of its end": (
        f"{SERVER}::test_expired_and_revoked_tokens_are_refused",
        f"{SERVER}::test_a_request_that_waits_ends_with_its_token",
        f"{SERVER}::test_a_message_does_not_go_to_a_token_that_was_revoked_meanwhile",
    ),
    "Tokens with different prefixes have endpoints and crons": (
        f"{ENDPOINTS}::test_each_prefix_has_its_own_names",
        f"{ENDPOINTS}::test_a_prefix_cannot_find_out_or_take_the_names_of_others",
        f"{ENDPOINTS}::test_crons_of_one_name_do_not_meet",
    ),
    "With a file of tokens, callbacks go only": (
        f"{ENDPOINTS}::test_with_tokens_callbacks_go_only_to_public_addresses",
    ),
    "The token of a callback settles only its own message": (
        f"{PUSH}::test_the_token_of_a_callback_settles_only_with_a_token_of_the_server",
        "tests/server/test_hostile_calls.py::test_a_forged_token_settles_nothing",
    ),
    "The token of a delivery holds 58 random bits": (
        f"{MESSAGES}::test_the_token_of_a_lease_has_58_random_bits",
    ),
    "So another client of the same queue cannot settle": (
        "tests/server/test_hostile_calls.py::test_a_forged_token_settles_nothing",
    ),
    "With a token for `poll`, a client can lease": (
        f"{SERVER}::test_a_worker_may_wait_before_there_is_a_queue",
        f"{PORT}::test_an_operation_needs_its_scope",
    ),
    "A queue that does not exist is made only by": (
        f"{MISSING}::test_only_an_offer_makes_a_queue",
        f"{MISSING}::test_a_server_that_makes_no_queue_says_which_is_meant",
        f"{MISSING}::test_a_server_that_makes_no_queue_serves_what_there_is",
        f"{MISSING}::test_an_endpoint_needs_its_queue_on_a_server_that_makes_none",
    ),
    "The server has a limit of open queues": (
        f"{MISSING}::test_one_token_does_not_close_the_queues_of_others",
        "tests/server/test_metrics.py::test_the_number_of_series_is_bounded",
    ),
    "With a token for `read`, a client cannot change": (
        f"{PORT}::test_with_a_token_for_read_nothing_changes",
        f"{SERVER}::test_a_scope_allows_its_requests_and_no_others",
    ),
    "The clock and the settings of the server decide": (
        f"{PORT}::test_the_clock_of_the_server_decides",
        f"{PORT}::test_the_server_decides_about_the_history",
    ),
    "A client can neither move time, nor leave out": (
        f"{PORT}::test_the_clock_of_the_server_decides",
        f"{PORT}::test_the_server_decides_about_the_history",
        f"{PORT}::test_a_client_cannot_delete_as_expired_what_is_not",
    ),
    "A server with `--dev` believes its clients": (
        "tests/server/test_stopping.py::test_dev_has_a_token_and_a_clock",
    ),
    "The server limits heads, bodies, batches, waits": (
        f"{HEADS}::test_a_head_without_an_end_is_refused",
        f"{SERVER}::test_bodies_that_are_too_long",
        "tests/server/test_polling.py::test_bad_polls",
        "tests/server/test_polling.py::test_too_many_waiters_are_refused",
    ),
    "It disconnects a client that sends or reads too slowly": (
        f"{SERVER}::test_a_head_that_does_not_end_is_given_up",
        f"{SERVER}::test_a_body_that_does_not_end_is_given_up",
        f"{SERVER}::test_an_answer_that_is_not_read_is_given_up",
    ),
    "A URL has at most 8 KiB": (
        f"{HEADS}::test_a_head_of_the_largest_size_is_answered",
        f"{HEADS}::test_a_refusal_is_a_problem_document",
        f"{HEADS}::test_a_head_without_an_end_is_refused",
    ),
    "Unfinished heads of all connections together": (
        f"{HEADS}::test_unfinished_heads_are_limited_together",
    ),
    "A client without a token that ignores this": (
        f"{HEADS}::test_a_head_without_an_end_is_refused",
        f"{HEADS}::test_requests_without_an_end_are_not_collected",
    ),
    "The server closes a connection whose answer ends": (
        f"{CONNECTIONS}::test_a_connection_ends_whose_answer_came_before_its_request",
    ),
    "It limits the connections, in all and from one address": (
        f"{CONNECTIONS}::test_connections_are_limited_in_all_and_per_address",
        f"{CONNECTIONS}::test_a_process_with_few_files_takes_fewer_connections",
    ),
    "It logs when there are too many": (
        f"{CONNECTIONS}::test_connections_are_limited_in_all_and_per_address",
        f"{CONNECTIONS}::test_a_server_without_files_says_so_and_recovers",
    ),
    "With HTTPS, a connection counts from its beginning": (
        f"{HANDSHAKES}::test_silent_connections_are_limited_before_their_handshake",
        f"{HANDSHAKES}::test_a_connection_counts_for_as_long_as_it_is_open",
    ),
    "The server closes it without an answer if there are": (
        f"{HANDSHAKES}::test_silent_connections_are_limited_before_their_handshake",
        f"{HANDSHAKES}::test_a_handshake_that_does_not_end_is_given_up",
    ),
    "TLS takes memory only after the whole first message": (
        f"{HANDSHAKES}::test_what_a_client_announces_takes_no_memory",
        f"{HANDSHAKES}::test_the_longest_message",
    ),
    "At most 512 handshakes go on at a time": (
        f"{HANDSHAKES}::test_handshakes_wait_for_those_under_way",
    ),
    "If an address has that many, each of them has one more": (
        f"{HANDSHAKES}::test_handshakes_that_hold_all_places_have_to_hurry",
    ),
    "Log lines and error answers contain neither": (
        f"{SERVER}::test_neither_payloads_nor_tokens_are_logged",
    ),
    "With `--access-log`, log lines contain keys": (f"{SERVER}::test_the_access_log_has_the_keys",),
    "The server does not limit how many requests": (
        f"{SERVER}::test_requests_are_not_limited_in_number",
    ),
    "`duequeue migrate --roles` prints a script": (
        "tests/cli/test_migrate.py::test_the_printed_roles_are_those_of_the_store",
        f"{ROLES}::test_the_functions_belong_to_the_owner_of_the_tables",
    ),
    "A producer can neither read payloads nor delete": (
        f"{ROLES}::test_a_producers_login_can_neither_read_nor_delete",
        f"{ROLES}::test_a_consumer_does_nothing_else",
        f"{ROLES}::test_only_an_administrator_adds_a_queue",
    ),
    "A process that can write to the file": (
        f"{MESSAGES}::test_who_can_write_to_the_file_can_do_everything",
    ),
    "DueQueue has no script with roles for them": (
        "tests/cli/test_migrate.py::test_the_printed_roles_are_those_of_the_store",
    ),
    "The guide lists the rights that a user needs": (
        "tests/redis/test_rights.py::test_everything_can_be_done",
        "tests/redis/test_rights.py::test_nothing_else_can_be_done",
    ),
    "Tokens have scopes, and can be limited to queues": (
        f"{SERVER}::test_a_scope_allows_its_requests_and_no_others",
    ),
    "The messages belong to the process": (
        "tests/unit/test_memory_lifetime.py::test_memory_lasts_as_long_as_a_queue_on_it",
    ),
    "`make sbom` writes": (f"{MATERIALS}::test_it_has_every_extra",),
    "Decision 8 says why each dependency is there": (
        f"{MATERIALS}::test_a_decision_says_why_each_dependency_is_there",
    ),
}
# Sentences that say what the reader, Spark, or a person who makes a release should do or does.
NOT_ABOUT_DUEQUEUE = {
    "Use it, because every user of a machine",
    "Keep secrets out of them",
    "If you write a codec with `pickle`",
    "Spark passes functions to its executors",
    "Secure the cluster as Spark's own",
    "If you do not trust the other users",
    "Let a proxy in front of it do that",
    "Let a proxy terminate TLS",
    "The guide also says what the roles cannot prevent",
    "Use `sslmode=verify-full`",
    "Let only the account of your workers",
    "Set `ssl_mode=verify_identity`",
    "Use `rediss://`",
    "Use `https://`",
    "Each release has this file",
}
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?=- |## )")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_LABEL = re.compile(r"^(- )?(\*\*[^*]*\*\*)?\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def sentences() -> list[str]:
    """Every sentence of the page, without links and line breaks."""
    page = (ROOT / "SECURITY.md").read_text("utf-8").partition(PROMISES)[2]
    found: list[str] = []
    for paragraph in _PARAGRAPH_END.split(page):
        if paragraph.strip() and not paragraph.lstrip().startswith("#"):
            text = _LABEL.sub("", _LINK.sub(r"\1", paragraph.strip()))
            found += _SENTENCE_END.split(" ".join(text.split()))
    return found


@pytest.mark.parametrize("sentence", sentences())
def test_tests_check_the_sentence(sentence: str) -> None:
    known = [*CHECKED, *NOT_ABOUT_DUEQUEUE]
    begin = [each for each in known if sentence.startswith(each)]
    assert len(begin) == 1, f"name the tests of this sentence of SECURITY.md: {sentence}"


@pytest.mark.parametrize("beginning", [*CHECKED, *sorted(NOT_ABOUT_DUEQUEUE)])
def test_the_page_has_the_sentence(beginning: str) -> None:
    assert [each for each in sentences() if each.startswith(beginning)]


@pytest.mark.parametrize("test", sorted({each for tests in CHECKED.values() for each in tests}))
def test_the_test_exists(test: str) -> None:
    path, _, name = test.partition("::")
    assert name in functions_of(path)


@cache
def functions_of(path: str) -> set[str]:
    """The names of the functions of a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}
