-- What became of messages, for those who ask: the response, or else the reason why there is none. Each
-- change of a row gives it a new id, so that nobody who means to delete an old response deletes a new one.
CREATE TABLE IF NOT EXISTS duequeue_response (
    id bigint NOT NULL AUTO_INCREMENT,
    responded_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    kind_id int NOT NULL,
    `key` varbinary(800) NOT NULL,
    payload longblob,
    reason longblob,
    PRIMARY KEY (id),
    UNIQUE KEY duequeue_response_key (`key`, kind_id),
    KEY duequeue_response_expiry (kind_id, expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
