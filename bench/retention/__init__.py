"""A week of 10 messages a second, a hundredth of 1,000, from offer to report.

`make bench-retention`, or `python -m bench.retention`.

week.py            one simulated day after the other, through every stage
meter.py           what a stage takes: time, and memory while it lasts
costs.py           what was measured, per million messages; kept as JSON
full_scale.py      what it would be for all of the messages, as far as that can be told
tables.py, plot.py
"""
