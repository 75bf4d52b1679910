"""Mixed traffic for an hour: does anything grow? `make soak`, or `make soak MINUTES=3`."""
