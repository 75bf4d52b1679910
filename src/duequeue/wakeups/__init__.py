"""Who waits for a message, and what wakes them."""
