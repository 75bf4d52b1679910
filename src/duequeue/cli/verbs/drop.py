"""`duequeue drop` deletes messages: those of some keys, some by their state or prefix, or all."""

import argparse
from collections.abc import Iterator

from duequeue.cli.asking import add_safety, agreed
from duequeue.cli.exit_codes import ExitCode
from duequeue.cli.facts import named
from duequeue.cli.keys import add_keys, for_each_key, keys_of
from duequeue.cli.numbers import counted
from duequeue.cli.opening import add_queue, chosen_queue, place_of
from duequeue.cli.output import Output, add_output
from duequeue.cli.payloads import STDIN
from duequeue.cli.verbs.ls import add_filters, filters_of, selected
from duequeue.errors import InvalidArgument
from duequeue.flows.inspecting import drop_if_selected
from duequeue.flows.listing import selection_of
from duequeue.parts import Parts
from duequeue.queue import Queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Delete messages, leased or not: those of the given keys, those that the filters select, "
        "or all. Buried messages stay."
    )
    add_keys(parser, "*")
    add_queue(parser)
    add_filters(parser)
    parser.add_argument("--all", action="store_true", help="delete every message of the queue")
    add_safety(parser)
    add_output(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Delete the messages."""
    output = Output(given)
    filtered = any((given.state, given.prefix, given.due_from, given.due_to))
    if bool(given.keys) + given.all + filtered != 1:
        raise InvalidArgument(
            "keys", text="pass either keys, or filters such as --prefix, or --all"
        )
    place = place_of(given)
    parts = place.parts(chosen_queue(given, place))
    with parts.queue as queue:
        if given.dry_run:
            return _dry_run(queue, given, output)
        if given.all:
            return _drop_all(queue, given, output)
        if filtered:
            return _drop_selected(parts, given, output)
        return _drop_keys(queue, given, output)


def _dry_run(queue: Queue[bytes], given: argparse.Namespace, output: Output) -> int:
    number = output.items(({"key": key} for key in _keys(queue, given)), (named("key"),))
    output.talk(f"{counted(number, 'message')} would be deleted; nothing was changed")
    return ExitCode.DONE if number else ExitCode.NOTHING_FOUND


def _keys(queue: Queue[bytes], given: argparse.Namespace) -> Iterator[str]:
    if given.keys:
        return (key for key in keys_of(given) if queue.contains(key))
    return (message.key for message in selected(queue, given))


def _drop_keys(queue: Queue[bytes], given: argparse.Namespace, output: Output) -> int:
    is_stdin = given.keys == [STDIN]
    what = "the messages on standard input" if is_stdin else counted(len(given.keys), "message")
    if not agreed(given, f"Delete {what} from {queue.name!r}?", output):
        return ExitCode.FAILED
    return for_each_key(keys_of(given), output, queue.drop, "dropped")


def _drop_selected(parts: Parts[bytes], given: argparse.Namespace, output: Output) -> int:
    queue, selection = parts.queue, selection_of(**filters_of(given))
    keys = [message.key for message in selected(queue, given)]
    if not keys:
        output.talk("no message is selected")
        return ExitCode.NOTHING_FOUND
    if not agreed(given, f"Delete {counted(len(keys), 'message')} from {queue.name!r}?", output):
        return ExitCode.FAILED

    def drop(key: str) -> bool:
        """Drop a message unless somebody has changed it since it was listed."""
        return parts.drive(drop_if_selected(parts.context, key, selection))

    return for_each_key(keys, output, drop, "dropped", "is no longer selected")


def _drop_all(queue: Queue[bytes], given: argparse.Namespace, output: Output) -> int:
    stored = queue.stats().total
    question = f"Delete all {counted(stored, 'message')} of the queue {queue.name!r}?"
    if not agreed(given, question, output):
        return ExitCode.FAILED
    dropped = queue.drop_all(confirm=queue.name)
    row = {"queue": queue.name, "dropped": dropped}
    output.items([row], (named("queue"), named("dropped", is_number=True)), key="dropped")
    return ExitCode.DONE
