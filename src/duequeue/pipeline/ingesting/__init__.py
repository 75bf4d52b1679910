"""Ingest: files or tables become messages."""
