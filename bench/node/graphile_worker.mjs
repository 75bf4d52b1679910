// graphile-worker, with the settings that its page on performance recommends.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { chunks, drive, pinged, sleep, stamp, Tally, timed } from "./driver.mjs";

const CHUNK = 1000;
const CONCURRENCY = 24;
const FAST = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const logger = new Logger(() => () => {});

class Peer {
  async open(url, payload) {
    this.url = url;
    this.payload = { payload };
    this.utils = await makeWorkerUtils({ connectionString: url, maxPoolSize: 16, logger });
    await this.utils.migrate();
  }

  close = () => this.utils.release();

  async load(messages) {
    for (const count of chunks(messages, CHUNK)) {
      const job = { identifier: "bench", payload: this.payload };
      await this.utils.addJobs(Array.from({ length: count }, () => job));
    }
  }

  offer = () => this.utils.addJob("bench", this.payload);
  offer_one = (messages) => timed(messages, this.offer);
  offer_together = (messages, callers) => timed(messages, this.offer, callers);
  offer_batch = (messages) => timed(1, () => this.load(messages));

  async consume(messages) {
    const tally = new Tally(messages);
    const runner = await this.work(() => tally.count());
    await tally.done;
    await runner.stop();
    return tally.seconds;
  }

  async receive(messages, ready) {
    const tally = new Tally(messages);
    const ages = [];
    const runner = await this.work(({ sent }) => {
      ages.push(stamp() - sent);
      tally.count();
    });
    await sleep(1000);
    ready();
    await tally.done;
    await runner.stop();
    return ages;
  }

  ping = (messages) => pinged(messages, (sent) => this.utils.addJob("bench", { sent }));

  async keep_time(messages, seconds) {
    const start = stamp() + 1000 + messages / 5;
    const dues = Array.from({ length: messages }, () => start + Math.random() * seconds * 1000);
    await this.utils.addJobs(
      dues.map((due) => ({
        identifier: "bench",
        payload: { sent: due },
        runAt: new Date(due),
      })),
    );
    return this.receive(messages, () => {});
  }

  async stay_idle(seconds) {
    const runner = await this.work(() => {});
    await sleep(seconds * 1000);
    await runner.stop();
  }

  work(look) {
    return run({
      preset: {
        worker: {
          connectionString: this.url,
          concurrentJobs: CONCURRENCY,
          maxPoolSize: CONCURRENCY,
          logger,
          ...FAST,
        },
      },
      noHandleSignals: true,
      taskList: { bench: async (payload) => look(payload) },
    });
  }
}

drive(new Peer());
