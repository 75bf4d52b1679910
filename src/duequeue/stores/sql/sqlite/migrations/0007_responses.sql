-- What became of messages, for those who ask: the response, or else the reason why there is none. Each
-- change of a row gives it a new id, so that nobody who means to delete an old response deletes a new one.
CREATE TABLE duequeue_response (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    responded_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    kind_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    payload BLOB,
    reason TEXT
) STRICT;

CREATE UNIQUE INDEX duequeue_response_key ON duequeue_response (kind_id, key);
CREATE INDEX duequeue_response_expiry ON duequeue_response (kind_id, expires_at);
