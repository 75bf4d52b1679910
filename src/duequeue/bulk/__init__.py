"""Operations on whole batches of messages, for Spark."""
