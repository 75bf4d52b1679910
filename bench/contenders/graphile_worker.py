"""The peer graphile-worker."""

from bench.node_peer import NodePeer, seconds_of


class GraphileWorker(NodePeer):
    """Twenty-four at once, from a local queue of 500, with acks gathered."""

    script = "graphile_worker.mjs"
    notes = "Node.js; a poll alone is not part of its interface"

    offer_one = seconds_of("offer_one")
    offer_together = seconds_of("offer_together")
    offer_batch = seconds_of("offer_batch")
    consume = seconds_of("consume")
    keep_time = seconds_of("keep_time")
    stay_idle = seconds_of("stay_idle")
