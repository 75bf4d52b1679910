"""Ours, the peers' and the limit, measured side by side in one run: `make bench`."""
