import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { Secret } from "../../src/sealing/seal.js";

const secret = new Secret("CANARY_1234");

describe("Secret", () => {
  it.each([
    ["template", () => `${secret}`],
    ["String()", () => String(secret)],
    ["concatenation", () => `x${secret}`],
    ["JSON", () => JSON.stringify({ secret, list: [secret] })],
    ["inspect", () => inspect({ deep: { secret } }, { showHidden: true, depth: 9, getters: true })],
    ["inspect without custom", () => inspect(secret, { customInspect: false, showHidden: true })],
    ["keys", () => JSON.stringify([Object.entries(secret), Reflect.ownKeys(secret)])],
    ["structured clone", () => inspect(structuredClone(secret))],
    ["error", () => String(new Error(`${secret}`).stack)],
  ])("is redacted in %s", (_, print) => expect(print()).not.toContain("CANARY"));

  it("reveals itself only when asked", () => expect(secret.reveal()).toBe("CANARY_1234"));
});
