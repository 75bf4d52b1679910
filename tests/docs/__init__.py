"""The documentation keeps its word."""
