-- Messages on their way in, each with its place in the part that a writer has staged.
CREATE TABLE IF NOT EXISTS duequeue_stage (
    writer bigint NOT NULL,
    batch bigint NOT NULL,
    part bigint NOT NULL,
    position bigint NOT NULL,
    due_at bigint NOT NULL,
    `replace` boolean NOT NULL,
    `key` varbinary(800) NOT NULL,
    payload longblob NOT NULL,
    headers longblob,
    PRIMARY KEY (writer, batch, part, position)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The last batch that each writer has merged, and what became of it.
CREATE TABLE IF NOT EXISTS duequeue_stream_commit (
    kind_id int NOT NULL,
    app varbinary(800) NOT NULL,
    batch bigint NOT NULL,
    created bigint NOT NULL DEFAULT 0,
    updated bigint NOT NULL DEFAULT 0,
    ignored bigint NOT NULL DEFAULT 0,
    committed_at bigint NOT NULL,
    PRIMARY KEY (kind_id, app)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The leased ids of each micro-batch, as a JSON array. No index holds the lease, and due ids lie
-- scattered among millions that are not, so a batch finds its messages from here.
CREATE TABLE IF NOT EXISTS duequeue_stream_batch (
    kind_id int NOT NULL,
    consumer varbinary(800) NOT NULL,
    sequence bigint NOT NULL,
    slice int NOT NULL,
    leased_at bigint NOT NULL,
    leased_until bigint NOT NULL,
    last_due_at bigint NOT NULL,
    longest_payload int NOT NULL,
    ids longtext CHARACTER SET ascii NOT NULL,
    handler_ms longtext CHARACTER SET ascii,
    PRIMARY KEY (kind_id, consumer, sequence, slice)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
