-- What settled messages leave behind, if their queue keeps a history. Each UTC day gets a partition of
-- its own, so that a day that was archived goes as a whole. The first partition takes the days before
-- 1970; see partitions.py for the others.
CREATE TABLE IF NOT EXISTS duequeue_history (
    id bigint NOT NULL AUTO_INCREMENT,
    asked_at bigint NOT NULL,
    delivered_at bigint,
    settled_at bigint NOT NULL,
    handler_ms bigint,
    kind_id int NOT NULL,
    attempts int NOT NULL,
    outcome varbinary(20) NOT NULL,
    `key` varbinary(800) NOT NULL,
    PRIMARY KEY (id, settled_at),
    KEY duequeue_history_time (kind_id, settled_at, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
PARTITION BY RANGE (settled_at) (PARTITION before_1970 VALUES LESS THAN (0));
