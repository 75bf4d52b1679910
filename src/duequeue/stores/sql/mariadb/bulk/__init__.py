"""Whole batches on MariaDB and MySQL, for Spark."""
