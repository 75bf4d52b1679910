"""Queues inside a transaction that the caller began, and that only the caller ends."""
