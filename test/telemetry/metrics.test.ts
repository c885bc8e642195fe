import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CallRecord } from "../../src/telemetry/call-log.js";
import { gaugeOf, type Metric } from "../../src/telemetry/metric.js";
import { createMetrics, expositionOf, type Metrics, sumOf } from "../../src/telemetry/metrics.js";
import { parseExposition, totalOf } from "../support/exposition.js";

let metrics: Metrics;
beforeEach(() => {
  metrics = createMetrics("1.2.3");
});
afterEach(() => metrics.close());

const call = (patch: Partial<CallRecord> = {}): CallRecord => ({
  callId: "id",
  requestId: undefined,
  traceId: undefined,
  surface: "rest",
  applicationId: "application",
  provider: "github",
  method: "GET",
  origin: "https://api.github.com",
  status: 200,
  errorType: undefined,
  rule: undefined,
  cause: undefined,
  totalMs: 10,
  headMs: undefined,
  tokenMs: undefined,
  providerMs: undefined,
  requestBytes: 0,
  responseBytes: 0,
  ...patch,
});

const samples = async (...processes: ReadonlyArray<readonly Metric[]>) =>
  parseExposition(await expositionOf(processes));
const seriesOf = (all: Awaited<ReturnType<typeof samples>>, name: string) =>
  all.filter((sample) => sample.name === name).map(({ labels }) => labels);

describe("createMetrics()", () => {
  it.each([
    [99, "other"],
    [100, "1xx"],
    [204, "2xx"],
    [599, "5xx"],
    [600, "other"],
    [999, "other"],
  ])("counts the status %i as %s", async (status, statusClass) => {
    metrics.call(call({ status }));
    const [labels] = seriesOf(await samples(metrics.read()), "relay_calls_total");
    expect(labels).toEqual({ provider: "github", surface: "rest", status_class: statusClass, error_type: "none" });
  });

  it.each([
    // What is as long as a bound is within it.
    [5, ["0.005", 1]],
    [5.001, ["0.01", 1]],
    [30_000, ["30", 1]],
    [30_001, ["+Inf", 1]],
  ])("puts a call of %d ms into the right bucket", async (totalMs, [bound, count]) => {
    metrics.call(call({ totalMs }));
    const all = await samples(metrics.read());
    const buckets = all.filter(({ name }) => name === "relay_call_duration_seconds_bucket");
    expect(buckets.find(({ value }) => value > 0)?.labels["le"]).toBe(bound);
    expect(totalOf(buckets, "relay_call_duration_seconds_bucket", { le: "+Inf" })).toBe(count);
    expect(totalOf(all, "relay_call_duration_seconds_sum")).toBeCloseTo(totalMs / 1000);
  });

  it("takes token and provider from the relay's own part, which is never below zero", async () => {
    metrics.call(call({ totalMs: 100, providerMs: 60, tokenMs: 30 }));
    expect(totalOf(await samples(metrics.read()), "relay_call_relay_duration_seconds_sum")).toBeCloseTo(0.01);
    metrics.call(call({ totalMs: 1, providerMs: 2 }));
    expect(totalOf(await samples(metrics.read()), "relay_call_relay_duration_seconds_sum")).toBeCloseTo(0.01);
  });
});

describe("expositionOf()", () => {
  it("escapes what stands in labels", async () => {
    metrics.fault('a"b\\c\nd');
    const text = await expositionOf([metrics.read()]);
    expect(text).toContain('relay_faults_total{where="a\\"b\\\\c\\nd"} 1');
  });

  it("adds up processes, each metric in its own way", async () => {
    const other = createMetrics("1.2.3");
    metrics.addSource(() => [
      gaugeOf({ name: "g_max", help: "x", aggregator: "max" }, 3),
      gaugeOf({ name: "g", help: "x" }, 3),
    ]);
    other.addSource(() => [
      gaugeOf({ name: "g_max", help: "x", aggregator: "max" }, 5),
      gaugeOf({ name: "g", help: "x" }, 5),
    ]);
    metrics.call(call());
    other.call(call());
    other.call(call({ provider: "slack" }));
    const both = [metrics.read(), other.read()];
    other.close();
    const all = await samples(...both);
    expect([totalOf(all, "g_max"), totalOf(all, "g"), totalOf(all, "relay_build_info")]).toEqual([5, 8, 1]);
    expect(totalOf(all, "relay_calls_total", { provider: "github" })).toBe(2);
    expect(totalOf(all, "relay_call_duration_seconds_bucket", { le: "+Inf" })).toBe(3);
    expect(await samples(JSON.parse(JSON.stringify(await sumOf(both))))).toEqual(all);
  });
});
