"""An archive run and a report every night, started by cron or by Airflow."""
