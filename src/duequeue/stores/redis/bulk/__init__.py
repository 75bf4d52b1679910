"""Operations on whole batches of messages, for Spark.

Nothing here takes more than a thousand messages in one script, because nobody else is served while
a script runs. So a batch is not one transaction: it becomes visible a thousand messages at a time,
and a batch that was interrupted continues where it stopped when it is tried again.
"""
