import { describe, expect, it } from "vitest";
import { decideDelivery } from "../../src/webhooks/deliverer.js";

const NOW = 1_800_000_000_000;
const at = (attempts: number, ageMs = 0) => ({ attempts, createdAt: NOW - ageMs });
const answer = (statusCode: number, retryAfter = "") => ({ statusCode, retryAfter });
const decide = (reply: ReturnType<typeof answer> | undefined, attempts = 1, random = 0, ageMs = 0) =>
  decideDelivery(reply, at(attempts, ageMs), { now: NOW, random });
/** Waiting time of the event and of the endpoint, in seconds. */
function waits(reply: ReturnType<typeof answer> | undefined, attempts = 1, random = 0) {
  const decision = decide(reply, attempts, random);
  if (decision.kind !== "retry") throw new Error(decision.kind);
  return [(decision.nextTryAt - NOW) / 1000, (decision.freeAt - NOW) / 1000];
}

describe("decideDelivery()", () => {
  it.each([200, 201, 202, 204, 299])("takes %i for delivered", (statusCode) => {
    expect(decide(answer(statusCode), 10, 0, 1e12)).toEqual({ kind: "delivered", freeAt: NOW });
  });

  it.each([199, 300, 302, 304, 400, 401, 404, 409, 429, 500, 503])("tries again after %i", (statusCode) => {
    expect(decide(answer(statusCode)).kind).toBe("retry");
  });

  it("gives an event up at once when the receiver says 410", () => {
    expect(decide(answer(410))).toEqual({ kind: "givenUp", freeAt: NOW });
  });

  it("follows the specification's schedule of ten attempts, then gives up", () => {
    const hours = (count: number) => count * 3600;
    const schedule = [5, 300, 1800, hours(2), hours(5), hours(10), hours(14), hours(20), hours(24)];
    for (const [failed, seconds] of schedule.entries()) expect(waits(undefined, failed + 1)[0]).toBe(seconds);
    expect(decide(undefined, 10)).toEqual({ kind: "givenUp", freeAt: NOW });
    expect(decide(answer(500), 11)).toEqual({ kind: "givenUp", freeAt: NOW });
  });

  it("waits a little longer by chance, never shorter", () => {
    expect(waits(undefined, 2, 0.5)[0]).toBe(315);
    expect(waits(undefined, 2, 0.999_999)[0]).toBeLessThanOrEqual(330);
  });

  it("lets the endpoint rest until the next try, but not longer than ten seconds", () => {
    expect(waits(answer(500), 1)).toEqual([5, 5]);
    expect(waits(answer(500), 2)).toEqual([300, 10]);
  });

  it.each([
    ["longer than the schedule", "60", 1, [60, 60]],
    ["shorter than the schedule", "60", 3, [1800, 60]],
    ["a date", new Date(NOW + 90_000).toUTCString(), 1, [90, 90]],
    ["longer than five minutes", "86400", 1, [300, 300]],
    ["in the past", new Date(NOW - 90_000).toUTCString(), 1, [5, 5]],
    ["nonsense", "soon", 1, [5, 5]],
  ])("heeds a Retry-After that is %s", (_, retryAfter, attempts, expected) => {
    expect(waits(answer(503, retryAfter), attempts)).toEqual(expected);
  });

  it("gives up what has waited for days, but only after it has been tried", () => {
    const days = (count: number) => count * 24 * 3_600_000;
    expect(decide(undefined, 2, 0, days(5) + 1).kind).toBe("givenUp");
    expect(decide(undefined, 2, 0, days(4)).kind).toBe("retry");
    expect(decide(answer(200), 2, 0, days(50)).kind).toBe("delivered");
  });

  it("retries an event that looks old when it is tried first, as one does that a slow clock wrote", () => {
    expect(decide(answer(503), 1, 0, NOW)).toEqual(decide(answer(503), 1));
  });
});
