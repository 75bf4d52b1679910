"""Keeps the ticks of schedules in a queue.

`queue.cron` checks arguments and makes an `Upkeep` of a plan, which knows the ticks that belong in
the queue and when to look again. The process has one `Scheduler`, a thread or a task for all its
crons. It asks its `Agenda` which upkeep is next and runs it. A run is one read and, if ticks are
missing, one installation, which is a single operation of the store (`port/cron_table.py`).
"""
