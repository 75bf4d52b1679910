CREATE TABLE duequeue_kind (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE duequeue_message (
    id INTEGER PRIMARY KEY,
    due_at INTEGER NOT NULL,
    asked_at INTEGER NOT NULL,
    leased_until INTEGER NOT NULL DEFAULT -62135596800000,
    lease_token INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER,
    kind_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    key TEXT NOT NULL,
    payload BLOB NOT NULL,
    headers TEXT
) STRICT;

CREATE UNIQUE INDEX duequeue_message_key ON duequeue_message (kind_id, key);

-- The lease stays out of the index here too, so that a claim rewrites one row and no index.
CREATE INDEX duequeue_message_due ON duequeue_message (kind_id, due_at, id);

CREATE TABLE duequeue_buried (
    id INTEGER PRIMARY KEY,
    asked_at INTEGER NOT NULL,
    buried_at INTEGER NOT NULL,
    kind_id INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    key TEXT NOT NULL,
    payload BLOB NOT NULL,
    reason TEXT NOT NULL,
    headers TEXT
) STRICT;

CREATE INDEX duequeue_buried_key ON duequeue_buried (kind_id, key, id);
CREATE INDEX duequeue_buried_time ON duequeue_buried (kind_id, buried_at, id);
