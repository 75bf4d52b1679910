-- Messages on their way in.
CREATE TABLE duequeue_stage (
    writer INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    part INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    replace INTEGER NOT NULL,
    key TEXT NOT NULL,
    payload BLOB NOT NULL,
    headers TEXT
) STRICT;

CREATE INDEX duequeue_stage_part ON duequeue_stage (writer, batch, part);

-- The last batch that each writer has merged, and what became of it.
CREATE TABLE duequeue_stream_commit (
    kind_id INTEGER NOT NULL,
    app TEXT NOT NULL,
    batch INTEGER NOT NULL,
    created INTEGER NOT NULL DEFAULT 0,
    updated INTEGER NOT NULL DEFAULT 0,
    ignored INTEGER NOT NULL DEFAULT 0,
    committed_at INTEGER NOT NULL,
    PRIMARY KEY (kind_id, app)
) STRICT, WITHOUT ROWID;

-- The leased ids of each micro-batch, as a JSON array. No index holds the lease, and due ids lie
-- scattered among millions that are not: whoever reads or acks a batch finds its messages from here.
CREATE TABLE duequeue_stream_batch (
    kind_id INTEGER NOT NULL,
    consumer TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    slice INTEGER NOT NULL,
    leased_at INTEGER NOT NULL,
    leased_until INTEGER NOT NULL,
    last_due_at INTEGER NOT NULL,
    longest_payload INTEGER NOT NULL,
    ids TEXT NOT NULL,
    PRIMARY KEY (kind_id, consumer, sequence, slice)
) STRICT;
