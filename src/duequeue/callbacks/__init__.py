"""One callback: a signed POST to an endpoint, and what its answer means."""
