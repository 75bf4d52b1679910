"""The connections that the queues of a process share, and the thread that watches them."""
