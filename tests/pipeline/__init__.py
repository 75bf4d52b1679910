"""The jobs of the pipeline, on a real Spark session and real databases."""
