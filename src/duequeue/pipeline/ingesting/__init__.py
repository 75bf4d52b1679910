"""The ingest job, which makes messages of files and tables."""
