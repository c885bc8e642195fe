import { describe, expect, it } from "vitest";
import {
  decideRefusal,
  decideRefusedToken,
  type Refusal,
  type RefusalCase,
  type RefusalEvidence,
  troubleAfter,
} from "../../src/oauth/verdict.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW = 1_800_000_000_000;
const NONE: RefusalEvidence = { othersRefreshedAt: undefined, othersRefreshed: 0, othersRefused: 0, allRefused: 0 };
const WELL: RefusalEvidence = { ...NONE, othersRefreshedAt: NOW - 1, othersRefreshed: 40 };

function decide(given: Partial<RefusalCase>) {
  return decideRefusal({
    isKnown: false,
    words: "w",
    before: undefined,
    evidence: NONE,
    clientUpdatedAt: 1,
    now: NOW,
    ...given,
  });
}

const refusalOf = (ageMs: number, count: number, patch: Partial<Refusal> = {}): Refusal => ({
  words: "w",
  since: NOW - ageMs,
  lastAt: NOW - HOUR_MS,
  countedAt: NOW - HOUR_MS,
  count,
  ...patch,
});

describe("decideRefusal() of words that end a refresh token", () => {
  it.each([
    ["the first of its kind", {}, true],
    ["two others before it, none refreshed since", { evidence: { ...NONE, othersRefused: 2 } }, true],
    ["three others before it, none refreshed since", { evidence: { ...NONE, othersRefused: 3 } }, false],
    ["a client that was changed since any was refreshed", { evidence: WELL, clientUpdatedAt: NOW }, false],
    ["a client that a wrong clock says will change", { evidence: WELL, clientUpdatedAt: NOW + 4 * DAY_MS }, true],
    ["a client that was changed, and works", { evidence: WELL, clientUpdatedAt: NOW - 2 }, true],
    ["a client that is new", { clientUpdatedAt: NOW }, true],
    ["many alike for two days", { evidence: { ...NONE, othersRefused: 9 }, before: refusalOf(2 * DAY_MS, 9) }, false],
    ["many alike for three days", { evidence: { ...NONE, othersRefused: 9 }, before: refusalOf(3 * DAY_MS, 2) }, true],
    [
      "many alike, twice in three days",
      { evidence: { ...NONE, othersRefused: 9 }, before: refusalOf(3 * DAY_MS, 1) },
      false,
    ],
  ] as const)("takes %s for what it is", (_what, given, isOver) => {
    expect(decide({ isKnown: true, ...given }).isOver).toBe(isOver);
  });
});

describe("decideRefusal() of other words", () => {
  const long = refusalOf(DAY_MS, 2);
  it.each([
    ["the first of its kind", { evidence: WELL }, false],
    ["three times over a day while others are well", { evidence: WELL, before: long }, true],
    ["three times within a day", { evidence: WELL, before: refusalOf(DAY_MS - 1, 2) }, false],
    ["twice over a day", { evidence: WELL, before: refusalOf(DAY_MS, 1) }, false],
    ["no other that was refreshed", { before: refusalOf(9 * DAY_MS, 99) }, false],
    [
      "no other that was refreshed since it counted",
      { evidence: { ...WELL, othersRefreshedAt: NOW - 2 * HOUR_MS }, before: long },
      false,
    ],
    [
      "two others that are refused alike",
      { evidence: { ...WELL, allRefused: 2, othersRefreshed: 0 }, before: long },
      true,
    ],
    ["many that are refused alike", { evidence: { ...WELL, allRefused: 9 }, before: long }, false],
    ["few that are refused of many", { evidence: { ...WELL, allRefused: 8 }, before: long }, true],
    ["other words before", { evidence: WELL, before: refusalOf(DAY_MS, 2, { words: "v" }) }, false],
  ] as const)("takes %s for what it is", (_what, given, isOver) => {
    expect(decide(given).isOver).toBe(isOver);
  });

  it("counts what comes again only when another connection was refreshed in between", () => {
    const alone = decide({ before: refusalOf(HOUR_MS, 1) }).refusal;
    expect(alone).toEqual(refusalOf(HOUR_MS, 1, { lastAt: NOW }));
    const beside = decide({ evidence: WELL, before: refusalOf(HOUR_MS, 1) }).refusal;
    expect(beside).toEqual(refusalOf(HOUR_MS, 2, { lastAt: NOW, countedAt: NOW }));
  });

  it("begins anew with other words", () => {
    const { refusal } = decide({ before: refusalOf(DAY_MS, 2, { words: "v" }) });
    expect(refusal).toEqual({ words: "w", since: NOW, lastAt: NOW, countedAt: NOW, count: 1 });
  });
});

describe("decideRefusedToken()", () => {
  const AFTER = NOW - HOUR_MS + 1;
  it.each([
    ["the first time", undefined, AFTER, 0, false],
    ["the second time", refusalOf(DAY_MS * 9, 1), AFTER, 0, false],
    ["the third time", refusalOf(HOUR_MS, 2), AFTER, 9, true],
    ["the third time, others answered before the second", refusalOf(HOUR_MS, 2), AFTER - 1, 0, false],
    ["the third time, no other answered", refusalOf(HOUR_MS, 2), undefined, 0, false],
    ["a day of it, no other answered", refusalOf(DAY_MS, 2), undefined, 2, true],
    ["less than a day of it, no other answered", refusalOf(DAY_MS - 1, 2), undefined, 2, false],
    ["a day of it while many are refused", refusalOf(DAY_MS, 2), undefined, 3, false],
    ["three days of it while many are refused", refusalOf(3 * DAY_MS, 2), undefined, 3, true],
  ] as const)("takes %s for what it is", (_what, before, othersTakenAt, allRefused, isOver) => {
    expect(decideRefusedToken({ words: "w", before, othersTakenAt, evidence: { allRefused }, now: NOW })).toMatchObject(
      {
        isOver,
        refusal: { count: (before?.count ?? 0) + 1, countedAt: NOW },
      },
    );
  });
});

describe("troubleAfter()", () => {
  it("is told once, after an hour", () => {
    const first = troubleAfter(undefined, { clientUpdatedAt: 7 }, NOW);
    expect(first).toMatchObject({ since: NOW, toldAt: undefined, clientUpdatedAt: 7 });
    expect(troubleAfter(first, {}, NOW + HOUR_MS - 1).toldAt).toBeUndefined();
    const told = troubleAfter(first, {}, NOW + HOUR_MS);
    expect(told).toMatchObject({ since: NOW, toldAt: NOW + HOUR_MS });
    expect(troubleAfter(told, {}, NOW + DAY_MS)).toMatchObject({ since: NOW, toldAt: NOW + HOUR_MS });
  });

  it("remembers a refusal while something else fails", () => {
    const refused = troubleAfter(undefined, { refusal: refusalOf(0, 1) }, NOW);
    expect(troubleAfter(refused, {}, NOW + 1).refusal).toEqual(refusalOf(0, 1));
  });

  it("begins at the latest now, whatever the clock said before", () => {
    expect(troubleAfter({ since: NOW + DAY_MS }, {}, NOW).since).toBe(NOW);
  });
});
