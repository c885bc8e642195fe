import { expect, it } from "vitest";
import { createCallIds, timeOfCallId } from "../../src/http/identity.js";

const UUID_7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

it("makes UUIDs of version 7 that tell their time, each another", () => {
  let now = 1_800_000_000_000;
  const newId = createCallIds(() => now);
  const ids = Array.from({ length: 1000 }, () => newId());
  expect(new Set(ids).size).toBe(1000);
  for (const id of ids) expect([UUID_7.test(id), timeOfCallId(id)]).toEqual([true, now]);
  for (now of [0, 1, 2 ** 48 - 1]) {
    expect(newId()).toMatch(UUID_7);
    expect(timeOfCallId(newId())).toBe(now);
  }
});

it.each([
  "",
  "x",
  "0190a0a0-0000-4000-8000-000000000000",
  "0190a0a0-0000-7000-8000-00000000000",
  "xxxxxxxx-xxxx-7xxx-8000-000000000000",
])("takes %s for no id", (text) => expect(timeOfCallId(text)).toBeUndefined());
