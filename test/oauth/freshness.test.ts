import { describe, expect, it } from "vitest";
import { createBreaker } from "../../src/oauth/breaker.js";
import { decideFreshness } from "../../src/oauth/refreshable.js";

const at = (now: number, expiresAt: number | undefined, id = "c", obtainedAt = 0) =>
  decideFreshness({ id, obtainedAt, expiresAt }, now);
const HOUR = 3_600_000;

describe("decideFreshness()", () => {
  it.each([
    ["no lifetime", 1, undefined, "unknown"],
    ["a clock before the token was obtained", -1, HOUR, "unknown"],
    ["the beginning", 0, HOUR, "fresh"],
    ["long before the end", HOUR * 0.89, HOUR, "fresh"],
    ["the last part of the lead", HOUR * 0.99, HOUR, "due"],
    ["the millisecond before the end", HOUR - 1, HOUR, "due"],
    ["the end", HOUR, HOUR, "ended"],
    ["long after the end", HOUR * 9, HOUR, "ended"],
    ["the first half of a short life", 14_000, 30_000, "fresh"],
    ["the end of a short life", 29_000, 30_000, "due"],
  ])("judges %s", (_when, now, expiresAt, freshness) => {
    expect(at(now, expiresAt)).toBe(freshness);
  });

  it("does not let connections that were made together become due together", () => {
    const dueAt = (id: string) =>
      Array.from({ length: HOUR / 10_000 }, (_, step) => step * 10_000).find((now) => at(now, HOUR, id) === "due");
    const times = new Set(Array.from({ length: 50 }, (_, n) => dueAt(`connection-${n}`)));
    expect(times.size).toBeGreaterThan(5);
    for (const time of times) expect(time).toBeGreaterThanOrEqual(HOUR * 0.9);
  });
});

/** Where an application is refreshed. */
function placeAt(endpoint: string, applicationId = "one") {
  const client = { id: "c", applicationId, providerName: "p", updatedAt: 0, refusedSince: undefined };
  return { endpoint, client };
}

describe("createBreaker()", () => {
  it("opens after ten failures in half a minute, lets one probe through every five seconds, closes on success", () => {
    const breaker = createBreaker();
    for (let n = 0; n < 9; n++) breaker.recordFailure(placeAt("e"), n * 1000);
    expect(breaker.waitMs(placeAt("e"), 9000)).toBe(0);
    breaker.recordFailure(placeAt("e"), 9000);
    expect(breaker.waitMs(placeAt("e"), 9001)).toBe(4999);
    expect(breaker.waitMs(placeAt("other"), 9001)).toBe(0);
    expect([breaker.peekMs(placeAt("e"), 14_000), breaker.peekMs(placeAt("e"), 9001)]).toEqual([0, 4999]);
    expect([breaker.waitMs(placeAt("e"), 14_000), breaker.waitMs(placeAt("e"), 14_001)]).toEqual([0, 4999]);
    breaker.recordSuccess(placeAt("e"));
    expect(breaker.waitMs(placeAt("e"), 14_002)).toBe(0);
  });

  it("stays open while its probes fail, and no longer than that", () => {
    const breaker = createBreaker();
    for (let n = 0; n < 10; n++) breaker.recordFailure(placeAt("e"), n);
    for (let at = 5010; at < 600_000; at += 5000) {
      expect([breaker.waitMs(placeAt("e"), at), breaker.isOpen(placeAt("e"))]).toEqual([0, true]);
      breaker.recordFailure(placeAt("e"), at + 1);
      expect(breaker.peekMs(placeAt("e"), at + 2)).toBeGreaterThan(4900);
    }
    breaker.recordSuccess(placeAt("e"));
    expect(breaker.isOpen(placeAt("e"))).toBe(false);
  });

  it("keeps what it knows of 10,000 endpoints at most: users may choose a part of them", () => {
    const breaker = createBreaker();
    const failures = (endpoint: string) => {
      for (let n = 0; n < 10; n++) breaker.recordFailure(placeAt(endpoint), n);
    };
    for (let n = 0; n < 10_000; n++) failures(`e${n}`);
    expect(breaker.isOpen(placeAt("e0"))).toBe(true);
    failures("one more");
    expect([breaker.isOpen(placeAt("e0")), breaker.isOpen(placeAt("e1")), breaker.isOpen(placeAt("one more"))]).toEqual(
      [false, true, true],
    );
  });

  it("counts for each application by itself: none makes another wait", () => {
    const breaker = createBreaker();
    for (let n = 0; n < 10; n++) breaker.recordFailure(placeAt("e"), n);
    expect([breaker.waitMs(placeAt("e"), 10), breaker.waitMs(placeAt("e", "another"), 10)]).toEqual([4999, 0]);
  });

  it("does not wait longer because the clock was set back", () => {
    const breaker = createBreaker();
    for (let n = 0; n < 10; n++) breaker.recordFailure(placeAt("e"), 3_600_000);
    expect(breaker.waitMs(placeAt("e"), 0)).toBe(0);
  });

  it("does not count failures of a clock that stood ahead and was set back", () => {
    const breaker = createBreaker();
    for (let n = 0; n < 9; n++) breaker.recordFailure(placeAt("e"), 3_600_000);
    breaker.recordFailure(placeAt("e"), 0);
    expect(breaker.isOpen(placeAt("e"))).toBe(false);
    for (let n = 1; n < 10; n++) breaker.recordFailure(placeAt("e"), n);
    expect(breaker.isOpen(placeAt("e"))).toBe(true);
  });

  it("forgets failures that are long past", () => {
    const breaker = createBreaker();
    for (let n = 0; n < 30; n++) breaker.recordFailure(placeAt("e"), n * 10_000);
    expect(breaker.waitMs(placeAt("e"), 300_000)).toBe(0);
  });
});
