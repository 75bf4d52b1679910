"""Races on real databases, with real threads and processes."""
