"""The archive job, which moves the history into Parquet."""
