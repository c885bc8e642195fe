import { getHeapSpaceStatistics } from "node:v8";
import { describe, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import type { Connection } from "../../src/oauth/connection.js";
import { newConnectionFrom } from "../../src/oauth/store-answer.js";
import { parseTokenResponse } from "../../src/oauth/token-response.js";
import type { Sealer } from "../../src/sealing/seal.js";
import { collectGarbage, collectNewGarbage } from "../support/collect-garbage.js";
import { unhandledRejectionsOf } from "../support/unhandled-rejections.js";
import { sealerForTest } from "./sealer-for-test.js";
import { tokenSourceForTest } from "./token-source-for-test.js";

const NOW = 1_800_000_000_000;
const sealer = sealerForTest();

function connectionForTest(members: object = {}, patch: Partial<Connection> = {}): Connection {
  const response = parseTokenResponse(JSON.stringify({ access_token: "CANARY_a", id_token: "CANARY_i", ...members }));
  const key = { applicationId: "app", userId: "user", providerName: "github" };
  const made = newConnectionFrom(sealer, {
    id: "c1",
    key,
    response,
    defaultExpiresInS: undefined,
    originParameters: {},
    obtainedAt: NOW,
  });
  const refresh = { stateReason: undefined, failCount: 0, lastFailedAt: undefined, lastErrorClass: undefined };
  return {
    ...made,
    ...refresh,
    nextTryAt: undefined,
    leaseUntil: undefined,
    unansweredSince: undefined,
    trouble: undefined,
    version: 1,
    createdAt: NOW,
    updatedAt: NOW,
    ...patch,
  };
}

async function failureOf(connection: Connection, now = NOW, using: Sealer = sealer): Promise<[string, string]> {
  const error = await tokenSourceForTest({ sealer: using, now: () => now })
    .accessToken(connection)
    .catch((e) => e);
  expect(error).toBeInstanceOf(RelayError);
  expect(error.message).not.toContain("CANARY");
  return [error.reason, error.message];
}

describe("accessToken()", () => {
  it("lets minor collections free what it opened for rows that are gone", async () => {
    const source = tokenSourceForTest({ sealer, now: () => NOW });
    const row = connectionForTest();
    const openTokens = async (count: number) => {
      for (let opened = 0; opened < count; opened++) {
        // All of one shape, as the store makes them.
        await source.accessToken(Object.assign({}, row));
        if (opened % 100 === 0) collectNewGarbage();
      }
    };
    await openTokens(500);
    for (let turn = 0; turn < 3; turn++) collectGarbage();
    const before = oldBytes();
    await openTokens(5000);
    collectNewGarbage();
    // Each row and its token take 0.7 KiB.
    expect(oldBytes() - before).toBeLessThan(1024 * 1024);
  });

  it("refuses when the user must connect again, before a token is opened", async () => {
    const never: Sealer = { ...sealer, open: () => expect.unreachable() };
    const connection = connectionForTest({ refresh_token: "r" }, { state: "REAUTHORIZATION_REQUIRED" });
    expect((await failureOf(connection, NOW, never))[0]).toBe("REAUTHORIZATION_REQUIRED");
  });

  it("refuses an expired token, from the millisecond of its end on", async () => {
    const never: Sealer = { ...sealer, open: () => expect.unreachable() };
    const end = NOW + 3_600_000;
    const lonely = connectionForTest({ expires_in: 3600 });
    const refreshable = connectionForTest({ expires_in: 3600, refresh_token: "r" });
    expect((await failureOf(lonely, end, never))[0]).toBe("REAUTHORIZATION_REQUIRED");
    expect((await failureOf(refreshable, end, never))[0]).toBe("REFRESH_UNAVAILABLE");
    const source = tokenSourceForTest({ sealer, now: () => end - 1 });
    expect((await source.accessToken(refreshable)).reveal()).toBe("CANARY_a");
  });

  it("leaves no rejection unhandled, which would end the process, when the caller has gone before the refresh fails", async () => {
    const source = tokenSourceForTest({ sealer, now: () => NOW + 3_600_000 });
    const ended = connectionForTest({ expires_in: 3600, refresh_token: "r" });
    const unhandled = await unhandledRejectionsOf(() =>
      expect(source.accessToken(ended, AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone"),
    );
    expect(unhandled).toEqual([]);
  });

  it("says that a stored token cannot be opened: damaged, moved, or without its key", async () => {
    const connection = connectionForTest({ refresh_token: "r" });
    const cases: [Connection, Sealer][] = [
      [{ ...connection, accessToken: connection.accessToken.subarray(1) }, sealer],
      [{ ...connection, accessToken: connection.refreshToken ?? new Uint8Array() }, sealer],
      [{ ...connection, userId: "other" }, sealer],
      [connection, sealerForTest("k2")],
    ];
    for (const [bad, using] of cases) {
      const [reason, message] = await failureOf(bad, NOW, using);
      expect([reason, message]).toEqual([
        "STORE_UNAVAILABLE",
        expect.stringContaining("stored token cannot be opened"),
      ]);
    }
  });

  it("gives the token, also when its end is unknown", async () => {
    const source = tokenSourceForTest({ sealer, now: () => NOW * 2 });
    expect((await source.accessToken(connectionForTest())).reveal()).toBe("CANARY_a");
  });

  it("lets a fault of the sealer through as it is", async () => {
    const fault = new TypeError("a fault");
    const broken: Sealer = {
      ...sealer,
      open: () => {
        throw fault;
      },
    };
    await expect(tokenSourceForTest({ sealer: broken, now: () => NOW }).accessToken(connectionForTest())).rejects.toBe(
      fault,
    );
  });
});

describe("idToken()", () => {
  const source = tokenSourceForTest({ sealer, now: () => NOW });

  it("gives none when the provider gave none, or the user must connect again", async () => {
    expect(await source.idToken(connectionForTest({ id_token: null }))).toBeUndefined();
    const gone = connectionForTest({}, { state: "REAUTHORIZATION_REQUIRED" });
    await expect(source.idToken(gone)).rejects.toMatchObject({ reason: "REAUTHORIZATION_REQUIRED" });
  });

  it("gives the ID token", async () => expect((await source.idToken(connectionForTest()))?.reveal()).toBe("CANARY_i"));
});

describe("newConnectionFrom()", () => {
  it("counts the lifetime from when the token was asked for", () => {
    expect(connectionForTest({ expires_in: "60" }).expiresAt).toBe(NOW + 60_000);
    expect(connectionForTest().expiresAt).toBeUndefined();
  });

  it("holds no token in the clear", () => {
    const connection = connectionForTest({ refresh_token: "CANARY_r" });
    const bytes = [connection.accessToken, connection.refreshToken, connection.idToken].map(
      (value) => value ?? new Uint8Array(),
    );
    expect(Buffer.concat(bytes).includes("CANARY")).toBe(false);
    expect(JSON.stringify(connection)).not.toContain("CANARY");
  });
});

function oldBytes(): number {
  return getHeapSpaceStatistics().find((space) => space.space_name === "old_space")?.space_used_size ?? 0;
}
