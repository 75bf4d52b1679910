"""Whole batches, for Spark."""
