"""A data team: reminders from a table, delivered by Spark, and how late each one was."""
