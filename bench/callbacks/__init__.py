"""Callbacks from one process: how many per second, how late, and to how many slow endpoints."""
