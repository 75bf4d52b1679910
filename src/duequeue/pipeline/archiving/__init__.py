"""Archive: history becomes Parquet."""
