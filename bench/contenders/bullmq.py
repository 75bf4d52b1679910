"""The peer BullMQ, on Redis and on PostgreSQL."""

from bench.node_peer import NodePeer, asked


class Bullmq(NodePeer):
    """Runs a hundred at once, and removes finished messages."""

    script = "bullmq.mjs"
    notes = "Node.js"

    offer_one = asked("offer_one")
    offer_together = asked("offer_together")
    offer_batch = asked("offer_batch")
    poll_ack_one = asked("poll_ack_one")
    consume = asked("consume")
    keep_time = asked("keep_time")
    stay_idle = asked("stay_idle")
