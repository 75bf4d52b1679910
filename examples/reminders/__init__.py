"""A data pipeline: reminders from a table, delivered by Spark, and how late they were."""
