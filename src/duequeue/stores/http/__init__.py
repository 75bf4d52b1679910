"""The store behind a DueQueue server, over HTTP."""
