import { describe, expect, it } from "vitest";
import { expiresAtFrom } from "../../src/oauth/token-response.js";

const NOW = 1_800_000_000_000;

describe("expiresAtFrom()", () => {
  it.each([
    [60, undefined, NOW + 60_000],
    [60, 3600, NOW + 60_000],
    [undefined, 3600, NOW + 3_600_000],
    [undefined, undefined, undefined],
  ])("takes expires_in %j and the default %j for %j", (expiresInS, defaultExpiresInS, expiresAt) => {
    expect(expiresAtFrom({ expiresInS }, defaultExpiresInS, NOW)).toBe(expiresAt);
  });
});
