"""The peer graphile-worker."""

from bench.node_peer import NodePeer, asked


class GraphileWorker(NodePeer):
    """Twenty-four at once, from a local queue of 500, with acks gathered."""

    script = "graphile_worker.mjs"
    notes = "Node.js; a poll alone is not part of its interface"

    offer_one = asked("offer_one")
    offer_together = asked("offer_together")
    offer_batch = asked("offer_batch")
    consume = asked("consume")
    keep_time = asked("keep_time")
    stay_idle = asked("stay_idle")
