"""The stores that implement the port, each in a package of its own."""
