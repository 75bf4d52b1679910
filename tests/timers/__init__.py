"""The timers, and the queues that are built on them."""
