"""Payload types: which types are allowed, their names, and how they become JSON."""
