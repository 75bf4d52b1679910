// Reads calls as lines of JSON, makes them on a peer, and answers with lines of JSON.

import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const print = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");

export async function drive(peer) {
  for await (const line of createInterface({ input: process.stdin })) {
    const [method, ...values] = JSON.parse(line);
    try {
      print({ result: await peer[method](...values, () => print({ ready: true })) });
    } catch (error) {
      print({ error: String(error) });
    }
  }
  process.exit();
}

// Awaits one call after another, by one or several callers, and returns the seconds.
export async function timed(times, call, callers = 1) {
  let next = 0;
  const caller = async () => {
    while (next < times) await call(next++);
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, caller));
  return (performance.now() - began) / 1000;
}

// Counts calls of a handler, and keeps the time from the first to the last.
export class Tally {
  constructor(expected) {
    this.calls = [];
    this.done = new Promise((resolve) => {
      this.count = () => {
        if (this.calls.push(performance.now()) === expected) resolve();
      };
    });
  }

  get seconds() {
    const { calls } = this;
    return (((calls.at(-1) - calls[0]) / 1000) * calls.length) / (calls.length - 1);
  }
}

// Returns the present instant in milliseconds, to send in a message.
export const stamp = () => performance.timeOrigin + performance.now();

// Calls with a stamp now and then, so that each call finds the workers asleep.
export async function pinged(messages, call) {
  for (let n = 0; n < messages; n++) {
    await sleep(10 + Math.random() * 10);
    await call(stamp());
  }
}

export function* chunks(messages, size) {
  for (let start = 0; start < messages; start += size) yield Math.min(size, messages - start);
}

export { sleep };
