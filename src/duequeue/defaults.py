"""The defaults of the faces, the server, callbacks, the command line and jobs.

A default or limit that a single signature names stays there.
"""

from datetime import timedelta

# A queue.
LEASE = timedelta(minutes=5)
# A consumer extends its leases while it lives. So it needs less, and the messages of one that was
# killed come again sooner. Callbacks and the clients of a server extend theirs too.
CONSUMER_LEASE = timedelta(minutes=1)
POLL_INTERVAL = timedelta(seconds=3)
# How long a response is kept.
KEEP = timedelta(hours=1)
# How many messages, burials or rows a page has.
PAGE = 100
LONGEST_PAGE = 1000
LONGEST_HISTORY = 10_000
# How many ticks of a cron, or last rows of the history, are shown.
FEW = 10
FORECAST_BUCKET = timedelta(hours=1)
FORECAST_UNTIL = timedelta(days=1)

# A consumer.
CONCURRENCY = 8
BATCH = 100
# With the usual backoff, the 25th failure of a message comes about ten hours after the first.
CONSUMER_MAX_ATTEMPTS = 25
# How long a stop lets handlers and callbacks run.
GRACE = timedelta(seconds=30)

# By which factor the delays of handlers, and the pauses between tries of a call, grow.
GROWTH = 2.0

# A server.
HOST = "127.0.0.1"
PORT = 8080
HISTORY = timedelta(days=30)
DRAIN = timedelta(seconds=3)

# An endpoint of callbacks.
CALL_TYPE = "json"
CALL_TIMEOUT = timedelta(seconds=30)
CALL_CONCURRENCY = 10
CALL_ATTEMPTS = 10
# About the schedule that Standard Webhooks gives as an example: ten attempts in three days.
CALL_BACKOFF = "10s:1d:5"
OVERLAP = timedelta(days=1)
# How many callbacks a process runs at a time.
CALLS = 1000

# A store: the most connections of a process.
POOL_SIZE = 10

# Jobs on Spark.
JOB_BATCH = 100
REPORT_DAYS = 7
