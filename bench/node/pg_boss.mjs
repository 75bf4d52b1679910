// pg-boss with LISTEN and NOTIFY, and batches of a hundred.

import { PgBoss } from "pg-boss";
import { chunks, drive, pinged, sleep, stamp, Tally, timed } from "./driver.mjs";

const QUEUE = "bench";
const CHUNK = 1000;
const BATCH = 100;
const WORKER = {
  batchSize: BATCH,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: 0.5,
  notifyPollingIntervalSeconds: 0.5,
};

class Peer {
  async open(url, payload) {
    this.payload = { payload };
    this.boss = new PgBoss({ connectionString: url, max: 16, schedule: false, useListenNotify: true });
    this.boss.on("error", () => {});
    await this.boss.start();
    await this.boss.createQueue(QUEUE, { notify: true });
  }

  close = () => this.boss.stop({ graceful: false });

  async load(messages) {
    for (const count of chunks(messages, CHUNK)) {
      await this.boss.insert(QUEUE, Array.from({ length: count }, () => ({ data: this.payload })));
    }
  }

  offer = () => this.boss.send(QUEUE, this.payload);
  offer_one = (messages) => timed(messages, this.offer);
  offer_together = (messages, callers) => timed(messages, this.offer, callers);
  offer_batch = (messages) => timed(1, () => this.load(messages));
  poll_ack_one = (messages) => timed(messages, () => this.fetchComplete(1));
  poll_ack_many = (messages) => timed(messages / BATCH, () => this.fetchComplete(BATCH));

  async fetchComplete(batchSize) {
    const jobs = await this.boss.fetch(QUEUE, { batchSize });
    await this.boss.complete(QUEUE, jobs.map((job) => job.id));
  }

  async consume(messages) {
    const tally = new Tally(messages);
    await this.work(() => tally.count());
    await tally.done;
    return tally.seconds;
  }

  async receive(messages, ready) {
    const tally = new Tally(messages);
    const ages = [];
    await this.work((job) => {
      ages.push(stamp() - job.data.sent);
      tally.count();
    });
    await sleep(1000);
    ready();
    await tally.done;
    return ages;
  }

  ping = (messages) => pinged(messages, (sent) => this.boss.send(QUEUE, { sent }));

  async keep_time(messages, seconds) {
    const start = stamp() + 1000 + messages / 5;
    const dues = Array.from({ length: messages }, () => start + Math.random() * seconds * 1000);
    await this.boss.insert(
      QUEUE,
      dues.map((due) => ({ data: { sent: due }, startAfter: new Date(due) })),
    );
    return this.receive(messages, () => {});
  }

  async stay_idle(seconds) {
    await this.work(() => {});
    await sleep(seconds * 1000);
  }

  work(look) {
    return this.boss.work(QUEUE, WORKER, async (jobs) => jobs.forEach(look));
  }
}

drive(new Peer());
