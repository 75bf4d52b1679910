"""A week of 10 messages a second, which is a hundredth of 1,000, from offer to report.

`make bench-retention`, or `python -m bench.retention`.

week.py            one simulated day after another, through every stage
meter.py           the time and the memory of a stage
costs.py           the measured costs per million messages, kept as JSON
full_scale.py      an estimate for the full number of messages
tables.py, plot.py
"""
