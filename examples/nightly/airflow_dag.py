"""An Airflow DAG that archives every night and then writes a report; put it into the DAGs folder.

The Airflow connection `duequeue` holds the URL of the database and its password. The Airflow worker
needs `duequeue[spark,postgres]` and Java.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import (  # type: ignore[import-not-found]
    BashOperator,
)
from airflow.sdk import DAG  # type: ignore[import-not-found]

ARCHIVE = "/srv/history"
REPORT = "/srv/report"
# In the environment, the URL appears neither in the list of processes nor in the log.
ENVIRONMENT = {"DUEQUEUE_URL": "{{ conn.duequeue.get_uri() }}"}

with DAG(
    dag_id="duequeue_nightly",
    schedule="15 0 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # a run archives every day that is over, so it makes up for missed runs
    max_active_runs=1,  # one archive run at a time
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10)},
):
    archive = BashOperator(
        task_id="archive",
        bash_command=f"duequeue pipeline archive --to {ARCHIVE} --keep 365d",
        env=ENVIRONMENT,
        append_env=True,
    )
    report = BashOperator(
        task_id="report",
        bash_command=f"duequeue pipeline report --archive {ARCHIVE} --to {REPORT}",
        env=ENVIRONMENT,
        append_env=True,
    )
    archive >> report
