-- One row per prefix, which is locked before anything about its ticks is changed.
CREATE TABLE IF NOT EXISTS duequeue_cron (
    kind_id int NOT NULL,
    prefix varbinary(800) NOT NULL,
    config_hash varbinary(800) NOT NULL,
    schedule longblob NOT NULL,
    generation int NOT NULL,
    installed boolean NOT NULL,
    paused boolean NOT NULL,
    created_until bigint,
    PRIMARY KEY (kind_id, prefix)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Every tick created; one without a message in the queue has run.
CREATE TABLE IF NOT EXISTS duequeue_tick (
    kind_id int NOT NULL,
    prefix varbinary(800) NOT NULL,
    config_hash varbinary(800) NOT NULL,
    tick_at bigint NOT NULL,
    `key` varbinary(800) NOT NULL,
    PRIMARY KEY (kind_id, prefix, config_hash, tick_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Stands for the ticks that ran so long ago that their rows were deleted.
CREATE TABLE IF NOT EXISTS duequeue_forgotten_tick (
    kind_id int NOT NULL,
    prefix varbinary(800) NOT NULL,
    config_hash varbinary(800) NOT NULL,
    forgotten_until bigint NOT NULL,
    PRIMARY KEY (kind_id, prefix, config_hash)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
