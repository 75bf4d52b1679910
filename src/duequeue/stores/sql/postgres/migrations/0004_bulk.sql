-- Messages on their way in. Unlogged, because what a crash of the server empties is staged again.
CREATE UNLOGGED TABLE duequeue_stage (
    writer bigint NOT NULL,
    batch bigint NOT NULL,
    part bigint NOT NULL,
    due_at bigint NOT NULL,
    replace boolean NOT NULL,
    key text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    headers text
);

CREATE INDEX duequeue_stage_part ON duequeue_stage (writer, batch, part);

-- The last batch that each writer has merged, and what became of it.
CREATE TABLE duequeue_stream_commit (
    kind_id integer NOT NULL,
    app text COLLATE "C" NOT NULL,
    batch bigint NOT NULL,
    created bigint NOT NULL DEFAULT 0,
    updated bigint NOT NULL DEFAULT 0,
    ignored bigint NOT NULL DEFAULT 0,
    committed_at bigint NOT NULL,
    PRIMARY KEY (kind_id, app)
);

-- The leased ids of each micro-batch. No index holds the lease, and due ids lie scattered among
-- millions that are not: whoever reads or acks a batch finds its messages from here.
CREATE TABLE duequeue_stream_batch (
    kind_id integer NOT NULL,
    consumer text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    slice integer NOT NULL,
    leased_at bigint NOT NULL,
    leased_until bigint NOT NULL,
    last_due_at bigint NOT NULL,
    longest_payload integer NOT NULL,
    ids bigint [] NOT NULL,
    PRIMARY KEY (kind_id, consumer, sequence, slice)
);

-- To compress the ids would take longer than to find and lock their messages.
ALTER TABLE duequeue_stream_batch ALTER COLUMN ids SET STORAGE EXTERNAL;
