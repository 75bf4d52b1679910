"""What happens in a queue, for listeners."""
