-- How long the handler took that settled a message, if a consumer or the pipeline has handled it.
ALTER TABLE duequeue_history ADD COLUMN handler_ms bigint;

-- How long it took for the messages of a micro-batch that are handled but not acked yet, by their ids.
ALTER TABLE duequeue_stream_batch ADD COLUMN handler_ms jsonb;
