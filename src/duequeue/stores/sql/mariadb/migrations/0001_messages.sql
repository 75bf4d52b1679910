-- Each statement can be run again, because DDL is not part of a transaction here. Text is stored as
-- bytes, in UTF-8, so that keys that differ in case, accents or trailing blanks stay different.
CREATE TABLE IF NOT EXISTS duequeue_kind (
    id int NOT NULL AUTO_INCREMENT PRIMARY KEY,
    kind varbinary(1300) NOT NULL,
    UNIQUE KEY duequeue_kind_kind (kind)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- kind_id is not a foreign key, because its check would lock the one row of a busy queue at every
-- insert. The lease is in no index, so that a claim changes only the row itself. The columns named
-- replaced_… note what an offer has overwritten, for the history.
CREATE TABLE IF NOT EXISTS duequeue_message (
    id bigint NOT NULL AUTO_INCREMENT,
    due_at bigint NOT NULL,
    asked_at bigint NOT NULL,
    leased_until bigint NOT NULL DEFAULT -62135596800000,
    lease_token bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    updated_at bigint,
    expires_at bigint,
    replaced_asked_at bigint,
    replaced_attempts int,
    kind_id int NOT NULL,
    attempt int NOT NULL DEFAULT 0,
    `key` varbinary(800) NOT NULL,
    payload longblob NOT NULL,
    headers longblob,
    PRIMARY KEY (id),
    UNIQUE KEY duequeue_message_key (`key`, kind_id),
    KEY duequeue_message_due (kind_id, due_at, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS duequeue_buried (
    id bigint NOT NULL AUTO_INCREMENT,
    asked_at bigint NOT NULL,
    buried_at bigint NOT NULL,
    kind_id int NOT NULL,
    attempts int NOT NULL,
    `key` varbinary(800) NOT NULL,
    payload longblob NOT NULL,
    reason longblob NOT NULL,
    headers longblob,
    PRIMARY KEY (id),
    KEY duequeue_buried_key (kind_id, `key`, id),
    KEY duequeue_buried_time (kind_id, buried_at, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
