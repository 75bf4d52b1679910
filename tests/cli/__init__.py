"""The command line, run as its users run it: in processes of its own."""
