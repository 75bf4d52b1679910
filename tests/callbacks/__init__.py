"""One callback: its signature, where it may go, and what its answer means."""
