"""Hands messages to a handler as they fall due."""
