"""Timers from a thousand to a million items, beside other ways to do the same.

    python -m bench.timers                  measure in rounds, and write bench/report/timers
    python -m bench.timers --publish        draw the last results, and put them into docs/timers.md

subjects.py          the timers, and what they are compared with
lifetimes.py         items that are added, of which some are cancelled and the others expire
memory_store.py      the memory store with many messages pending, on each timer
one.py               one measurement, in its own process
results.py, plot.py, tables.py
"""
