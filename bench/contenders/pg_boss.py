"""The peer pg-boss."""

from bench.node_peer import NodePeer, asked


class PgBoss(NodePeer):
    """Uses LISTEN and NOTIFY and batches of 100; looks for scheduled messages every half second."""

    script = "pg_boss.mjs"
    notes = "Node.js; keeps finished messages for days"

    offer_one = asked("offer_one")
    offer_together = asked("offer_together")
    offer_batch = asked("offer_batch")
    poll_ack_one = asked("poll_ack_one")
    poll_ack_many = asked("poll_ack_many")
    consume = asked("consume")
    keep_time = asked("keep_time")
    stay_idle = asked("stay_idle")
