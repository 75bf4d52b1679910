"""The peer BullMQ, on Redis and on PostgreSQL."""

from bench.node_peer import NodePeer, seconds_of


class Bullmq(NodePeer):
    """A hundred at once; what is done is removed."""

    script = "bullmq.mjs"
    notes = "Node.js"

    offer_one = seconds_of("offer_one")
    offer_together = seconds_of("offer_together")
    offer_batch = seconds_of("offer_batch")
    poll_ack_one = seconds_of("poll_ack_one")
    consume = seconds_of("consume")
    keep_time = seconds_of("keep_time")
    stay_idle = seconds_of("stay_idle")
