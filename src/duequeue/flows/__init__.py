"""What a queue does, once for both faces.

Each method of `Queue` and `AsyncQueue` is a flow here: a generator of actions (`drive/actions.py`).
Arguments are checked when a flow is made, so that bad ones raise before any I/O.
"""
