import { beforeEach, describe, expect, it } from "vitest";
import { createConnectionGauge } from "../../src/app/admin-port.js";
import type { ConnectionCounts } from "../../src/store/store-health.js";

let nowMs: number;
let counts: Array<() => Promise<ConnectionCounts>>;
let faults: unknown[];

beforeEach(() => {
  nowMs = 0;
  counts = [];
  faults = [];
});

const active = (count: number) => async (): Promise<ConnectionCounts> => ({
  states: new Map([["ACTIVE", count]]),
  refreshFailing: 0,
});
const gauge = () =>
  createConnectionGauge({
    count: () => (counts.shift() ?? (() => Promise.reject(new Error("counted too often"))))(),
    now: () => nowMs,
    onFault: (error) => faults.push(error),
  });
const shown = async (read: ReturnType<typeof gauge>) =>
  (await read())[0]?.values.map(({ labels, value }) => [labels, value]);

describe("createConnectionGauge()", () => {
  it("counts once a minute, whoever asks how often", async () => {
    counts = [active(1), active(2)];
    const read = gauge();
    expect(await Promise.all([shown(read), shown(read)])).toEqual([
      [[{ state: "active" }, 1]],
      [[{ state: "active" }, 1]],
    ]);
    nowMs = 59_999;
    expect(await shown(read)).toEqual([[{ state: "active" }, 1]]);
    nowMs = 60_000;
    expect(await shown(read)).toEqual([[{ state: "active" }, 2]]);
    expect(faults).toEqual([]);
  });

  it("shows the last figure while a count takes its time, and none where it fails", async () => {
    let end = (_counts: ConnectionCounts): void => {};
    const slow = new Promise<ConnectionCounts>((resolve) => {
      end = resolve;
    });
    counts = [active(1), () => slow];
    const read = gauge();
    await read();
    nowMs = 60_000;
    expect(await shown(read)).toEqual([[{ state: "active" }, 1]]);
    end({ states: new Map([["ACTIVE", 3]]), refreshFailing: 2 });
    expect(await shown(read)).toEqual([[{ state: "active" }, 3]]);
    expect(await read()).toMatchObject([
      { name: "relay_connections" },
      { name: "relay_connections_refresh_failing", values: [{ labels: {}, value: 2 }] },
    ]);
    nowMs = 120_000;
    expect(await read()).toEqual([]);
    expect(faults).toEqual([expect.objectContaining({ message: "counted too often" })]);
  });
});
