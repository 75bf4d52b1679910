-- One row per prefix; whoever changes anything about its ticks locks it first.
CREATE TABLE duequeue_cron (
    kind_id INTEGER NOT NULL,
    prefix TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    schedule TEXT NOT NULL,
    generation INTEGER NOT NULL,
    installed INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    created_until INTEGER,
    PRIMARY KEY (kind_id, prefix)
) STRICT, WITHOUT ROWID;

-- Every tick created; one without a message in the queue has run.
CREATE TABLE duequeue_tick (
    kind_id INTEGER NOT NULL,
    prefix TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    tick_at INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (kind_id, prefix, config_hash, tick_at)
) STRICT, WITHOUT ROWID;

-- Stands for the ticks that ran so long ago that their rows were deleted.
CREATE TABLE duequeue_forgotten_tick (
    kind_id INTEGER NOT NULL,
    prefix TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    forgotten_until INTEGER NOT NULL,
    PRIMARY KEY (kind_id, prefix, config_hash)
) STRICT, WITHOUT ROWID;
