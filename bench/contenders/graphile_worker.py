"""The peer graphile-worker."""

from bench.node_peer import NodePeer, asked


class GraphileWorker(NodePeer):
    """Runs 24 at once from a local queue of 500, and sends acks in batches."""

    script = "graphile_worker.mjs"
    notes = "Node.js; its interface has no single poll"

    offer_one = asked("offer_one")
    offer_together = asked("offer_together")
    offer_batch = asked("offer_batch")
    consume = asked("consume")
    keep_time = asked("keep_time")
    stay_idle = asked("stay_idle")
