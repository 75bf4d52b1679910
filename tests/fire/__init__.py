"""A fire drill: processes work on one store while things break, and their logs are judged.

The parts, in the order of their work:

    stores.py     names the stores, and which faults apply to each
    rounds.py     starts worker processes, lets faults happen, and empties the queues in the end
    worker.py     is such a process; actors.py and the files it imports say what it does
    recorder.py   writes each call to the log of its process, before it begins and after it ends
    nemesis.py    chooses faults; faults.py and proxy.py cause them
    histories.py  reads the logs back, as one history for each key
    model.py      says what a queue must answer
    search.py     looks for an order of the calls that the model allows
    checker.py    names each promise that the logs show to be broken, with the check_*.py beside it
    callback_rounds.py  is a round of callbacks, and check_posts.py its checker
    mutants.py    breaks the program on purpose, and tours.py shows what is broken

`python -m tests.fire --minutes 30` is the long form, and `pytest tests/fire` is the short one.
"""
