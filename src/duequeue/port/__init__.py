"""What a store must be able to do: all that the author of a store reads."""
