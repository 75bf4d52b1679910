"""The commands for people, one module each; they work on any store, and on a server."""
