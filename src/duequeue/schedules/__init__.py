"""When a schedule ticks, and how a tick is written as a key."""
