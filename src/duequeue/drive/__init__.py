"""How the generators of stores and queues are run, blocking or awaiting."""
