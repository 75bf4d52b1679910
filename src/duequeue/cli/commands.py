"""All commands: their names, what they do, and the modules that add their arguments."""

from typing import NamedTuple


class Command(NamedTuple):
    """A command, whose module has a function `add_arguments(parser)`."""

    name: str
    module: str
    about: str


def _verb(name: str, about: str, module: str | None = None) -> Command:
    return Command(name, f"duequeue.cli.verbs.{module or name}", about)


COMMANDS = (
    _verb("offer", "put a message into a queue"),
    _verb("poll", "fetch messages that are due"),
    _verb("ls", "list the messages of a queue"),
    _verb("show", "show one message"),
    _verb("drop", "delete messages"),
    _verb("reschedule", "make messages due at another time"),
    _verb("run-now", "make messages due now", "run_now"),
    _verb("buried", "list, revive or delete buried messages"),
    _verb("stats", "count messages by state"),
    _verb("top", "watch the numbers of all queues"),
    _verb("tail", "follow what happens to messages"),
    _verb("forecast", "count the messages that will fall due"),
    _verb("cron", "list, pause, resume or run recurring messages"),
    _verb("endpoint", "define, list or remove the endpoints that messages are posted to"),
    _verb("queues", "list the queues of a database"),
    _verb("export", "write all messages of a queue as lines of JSON", "exporting"),
    _verb("import", "offer messages from lines of JSON", "importing"),
    _verb("doctor", "examine a database, and give advice"),
    Command("serve", "duequeue.cli.serve", "serve queues over HTTP"),
    Command("push", "duequeue.cli.push", "post messages to endpoints when they are due"),
    Command("token", "duequeue.cli.token", "create, list and revoke the tokens of a server"),
    Command("worker", "duequeue.cli.worker", "pass messages to functions when they are due"),
    Command("pipeline", "duequeue.cli.pipeline", "run a job on Spark over whole queues"),
    Command("migrate", "duequeue.cli.migrate", "bring the tables of a database up to date"),
    _verb("completion", "print a script that completes commands in your shell"),
)
