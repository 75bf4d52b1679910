"""Stores of packages that DueQueue does not know, found by their entry points."""
