"""Keeps the ticks of schedules in a queue."""
