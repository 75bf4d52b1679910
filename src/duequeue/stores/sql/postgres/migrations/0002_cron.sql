-- One row per prefix; whoever changes anything about its ticks locks it first. Half of each page
-- is left free, because a busy cron rewrites its row with every tick.
CREATE TABLE duequeue_cron (
    kind_id integer NOT NULL,
    prefix text COLLATE "C" NOT NULL,
    config_hash text COLLATE "C" NOT NULL,
    schedule text NOT NULL,
    generation integer NOT NULL,
    installed boolean NOT NULL,
    paused boolean NOT NULL,
    created_until bigint,
    PRIMARY KEY (kind_id, prefix)
) WITH (fillfactor = 50);

-- Every tick created; one without a message in the queue has run.
CREATE TABLE duequeue_tick (
    kind_id integer NOT NULL,
    prefix text COLLATE "C" NOT NULL,
    config_hash text COLLATE "C" NOT NULL,
    tick_at bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind_id, prefix, config_hash, tick_at)
);

-- Stands for the ticks that ran so long ago that their rows were deleted.
CREATE TABLE duequeue_forgotten_tick (
    kind_id integer NOT NULL,
    prefix text COLLATE "C" NOT NULL,
    config_hash text COLLATE "C" NOT NULL,
    forgotten_until bigint NOT NULL,
    PRIMARY KEY (kind_id, prefix, config_hash)
);
