"""Hands messages to a handler as they fall due.

A feeder, a keeper and several handlers share one `Workload`, which knows what is fetched, running
and handled, and knows no threads. `Consumer` has a thread for each of them and a lock,
`AsyncConsumer` has tasks. What feeder, keeper and a stop decide is written once, as flows.

            poll_many                     take                   finish, with a verdict
  queue ──────────────▶ waiting ──────────────────▶ running ──────────────────────▶ done
              feeder      │      handlers, several     │                             │
                          └───── extended by the ──────┘             settled by the keeper,
                                 keeper, in one statement            each kind in one statement

- The feeder polls when there is room, one poll at a time, and waits as any poll does.
- The handlers call the user's function. `verdict.judge` turns what it returned or raised into a
  verdict: acked, released or parked.
- The keeper gathers verdicts for two milliseconds and settles them. It extends each lease of which
  a third has passed, and marks messages as lost if it could not.
- A message that may have killed a process is handled while nothing else is in hand, and while no
  other consumer of the process runs a handler (`solitude.py`).

A stop (`stopping.py`) ends the feeder first, so that nothing is fetched after the rest was given
back, then the handlers, and the keeper last.
"""
