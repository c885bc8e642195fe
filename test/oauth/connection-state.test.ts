import { describe, expect, it } from "vitest";
import { toldStateOf } from "../../src/oauth/refreshable.js";

const HOUR = 3_600_000;
const REFRESH_TOKEN = new Uint8Array(1);

function told(patch: object) {
  const connection = {
    id: "c",
    state: "ACTIVE",
    stateReason: undefined,
    refreshToken: undefined,
    obtainedAt: 0,
  } as const;
  const { state, reason } = toldStateOf({ ...connection, expiresAt: HOUR, ...patch }, HOUR);
  return { state, reason };
}

describe("toldStateOf()", () => {
  it("says that a token has ended that cannot be refreshed", () => {
    expect(told({})).toEqual({ state: "REAUTHORIZATION_REQUIRED", reason: "expired" });
  });

  it.each([
    ["can be refreshed", { refreshToken: REFRESH_TOKEN }],
    ["has not ended", { expiresAt: HOUR + 1 }],
    ["has no known end", { expiresAt: undefined }],
    ["was obtained in the future, by this clock", { obtainedAt: HOUR + 1 }],
  ])("says ACTIVE of one that %s", (_, patch) => {
    expect(told(patch)).toEqual({ state: "ACTIVE", reason: undefined });
  });

  it("gives the stored reason of one that was given up", () => {
    const state = { state: "REAUTHORIZATION_REQUIRED", stateReason: "invalid_grant", refreshToken: REFRESH_TOKEN };
    expect(told(state)).toEqual({ state: "REAUTHORIZATION_REQUIRED", reason: "invalid_grant" });
  });
});
