"""What each call costs, in counts that are the same on every machine."""
