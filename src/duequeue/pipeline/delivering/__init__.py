"""Deliver: messages are handled on executors."""
