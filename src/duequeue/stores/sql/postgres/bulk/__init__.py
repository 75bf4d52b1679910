"""Whole batches on PostgreSQL, for Spark."""
