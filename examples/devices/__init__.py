"""A device cloud: every device of a fleet gets its instruction at 07:00, local time."""
