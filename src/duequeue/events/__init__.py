"""The events of a queue, and listeners for them."""
