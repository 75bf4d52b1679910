"""The archive and the report of every night, by cron or by Airflow."""
