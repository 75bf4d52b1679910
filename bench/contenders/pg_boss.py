"""The peer pg-boss."""

from bench.node_peer import NodePeer, seconds_of


class PgBoss(NodePeer):
    """With LISTEN and NOTIFY; a hundred to a batch; looks for scheduled ones every half second."""

    script = "pg_boss.mjs"
    notes = "Node.js; keeps what is done for days"

    offer_one = seconds_of("offer_one")
    offer_together = seconds_of("offer_together")
    offer_batch = seconds_of("offer_batch")
    poll_ack_one = seconds_of("poll_ack_one")
    poll_ack_many = seconds_of("poll_ack_many")
    consume = seconds_of("consume")
    keep_time = seconds_of("keep_time")
    stay_idle = seconds_of("stay_idle")
