"""Report: what the archive shows, as a page."""
