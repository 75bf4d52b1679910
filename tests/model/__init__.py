"""A random walk through the contract, the same on two stores at once."""
