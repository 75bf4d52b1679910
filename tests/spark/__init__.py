"""The connector, on a real local Spark session."""
