import type { Worker } from "node:cluster";
import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { createWorkerMetrics } from "../../src/workers/supervisor.js";
import type { Message } from "../../src/workers/worker.js";
import { collectGarbage } from "../support/collect-garbage.js";

/** A worker as the supervisor sees it; it answers with no metrics, unless it has ended by then. */
class FakeWorker extends EventEmitter {
  readonly process = new EventEmitter();
  #isConnected = true;

  isConnected(): boolean {
    return this.#isConnected;
  }

  send(message: Message): void {
    if (message.type === "metricsAsked") setImmediate(() => this.#answer());
    else this.emit(message.type);
  }

  say(message: Message): void {
    this.emit("message", message);
  }

  #answer(): void {
    if (this.#isConnected) this.say({ type: "metrics", metrics: [], isLast: false });
  }

  end(): void {
    this.#isConnected = false;
    this.process.emit("close");
  }
}

const asWorker = (fake: FakeWorker) => fake as unknown as Worker;

describe("the metrics of all workers", () => {
  it("hold no worker that has ended, although it was asked for its metrics", async () => {
    const metrics = createWorkerMetrics();
    const reader = new FakeWorker();
    metrics.add(asWorker(reader));
    let id = 0;
    const read = () => {
      const sum = new Promise((resolve) => reader.once("metricsSum", resolve));
      id += 1;
      reader.say({ type: "metricsWanted", id });
      return sum;
    };

    const ended = await (async () => {
      const workers = [new FakeWorker(), new FakeWorker(), new FakeWorker()];
      for (const worker of workers) metrics.add(asWorker(worker));
      await read();
      const [first, second, third] = workers as [FakeWorker, FakeWorker, FakeWorker];
      // One sends a last report, one ends without a word, and one is asked once more before it ends.
      first.say({ type: "metrics", metrics: [], isLast: true });
      first.end();
      second.end();
      const last = read();
      third.end();
      await last;
      return workers.map((worker) => new WeakRef(worker));
    })();

    await read();
    await expect
      .poll(() => {
        collectGarbage();
        return ended.filter((worker) => worker.deref() !== undefined).length;
      })
      .toBe(0);
  });
});
