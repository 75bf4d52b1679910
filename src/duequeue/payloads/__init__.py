"""Payload types: which there are, what they are called, and how they become JSON."""
