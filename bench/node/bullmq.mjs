// BullMQ on Redis or PostgreSQL, as the URL says; finished messages are removed.

import { createRequire } from "node:module";
import { chunks, drive, pinged, sleep, stamp, Tally, timed } from "./driver.mjs";

// BullMQ finds its PostgreSQL driver only if it is loaded this way.
const { createPostgresBackend, Queue, Worker } = createRequire(import.meta.url)("bullmq");

const QUEUE = "bench";
const CHUNK = 1000;
const CONCURRENCY = 100;
const REMOVED = { removeOnComplete: true, removeOnFail: true };

class Peer {
  async open(url, payload) {
    this.payload = { payload };
    const { hostname: host, port, protocol } = new URL(url);
    this.backend = protocol === "redis:" ? [] : [createPostgresBackend];
    this.connection =
      protocol === "redis:"
        ? { host, port: Number(port), maxRetriesPerRequest: null }
        : { connectionString: url, max: 16, migrate: true };
    this.queue = new Queue(QUEUE, { connection: this.connection }, ...this.backend);
    await this.queue.waitUntilReady();
  }

  close = () => {};

  async load(messages) {
    for (const count of chunks(messages, CHUNK)) {
      await this.queue.addBulk(
        Array.from({ length: count }, () => ({ name: "bench", data: this.payload, opts: REMOVED })),
      );
    }
  }

  offer = () => this.queue.add("bench", this.payload, REMOVED);
  offer_one = (messages) => timed(messages, this.offer);
  offer_together = (messages, callers) => timed(messages, this.offer, callers);
  offer_batch = (messages) => timed(1, () => this.load(messages));

  async poll_ack_one(messages) {
    const worker = this.worker(null, 1);
    await worker.waitUntilReady();
    return timed(messages, async () => {
      const job = await worker.getNextJob("token");
      await job.moveToCompleted(null, "token", false);
    });
  }

  async consume(messages) {
    const tally = new Tally(messages);
    this.worker(async () => tally.count(), CONCURRENCY);
    await tally.done;
    return tally.seconds;
  }

  async receive(messages, ready) {
    const tally = new Tally(messages);
    const ages = [];
    const worker = this.worker(async (job) => {
      ages.push(stamp() - job.data.sent);
      tally.count();
    }, CONCURRENCY);
    await worker.waitUntilReady();
    await sleep(1000);
    ready();
    await tally.done;
    return ages;
  }

  ping = (messages) => pinged(messages, (sent) => this.queue.add("bench", { sent }, REMOVED));

  async keep_time(messages, seconds) {
    const start = stamp() + 1000 + messages / 5;
    const dues = Array.from({ length: messages }, () => start + Math.random() * seconds * 1000);
    await this.queue.addBulk(
      dues.map((due) => ({
        name: "bench",
        data: { sent: due },
        opts: { ...REMOVED, delay: Math.round(due - stamp()) },
      })),
    );
    return this.receive(messages, () => {});
  }

  async stay_idle(seconds) {
    this.worker(async () => {}, CONCURRENCY);
    await sleep(seconds * 1000);
  }

  worker(handler, concurrency) {
    const options = { connection: this.connection, concurrency };
    return new Worker(QUEUE, handler, options, ...this.backend);
  }
}

drive(new Peer());
