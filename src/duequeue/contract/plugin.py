"""The pytest plugin of the contract suite: its options, and where its fixtures are."""

import signal

import pytest

pytest_plugins = ["duequeue.contract.faces", "duequeue.contract.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that name the store under test."""
    group = parser.getgroup("duequeue", "the contract of DueQueue")
    group.addoption(
        "--url",
        help="the URL of the store under test; {unique} in it becomes a new word for each test",
    )
    group.addoption(
        "--one-process",
        action="store_true",
        help="skip the tests in which another process, or a later one, finds the messages",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of the tests that say the same of every store, and let SIGINT interrupt."""
    # A shell that starts pytest in the background has it ignore SIGINT, as do its child processes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers",
        "argument_checks: the face refuses arguments, and never asks its store; "
        "test_refused_calls proves that",
    )
