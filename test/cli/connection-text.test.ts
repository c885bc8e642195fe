import { describe, expect, it } from "vitest";
import {
  jsonFromAttempt,
  jsonFromConnection,
  textFromAttempts,
  textFromConnection,
} from "../../src/cli/connection-key.js";
import type { Connection } from "../../src/oauth/connection.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { connectionForTest, NOW } from "../store/store-for-test.js";

const HOUR_MS = 3_600_000;

function shown(patch: Partial<Connection>) {
  const key = { applicationId: "a", userId: "ada", providerName: "github" };
  const made = connectionForTest(sealerForTest(), key, { refresh_token: "r" });
  const connection: Connection = {
    ...made,
    stateReason: undefined,
    failCount: 0,
    lastFailedAt: undefined,
    lastErrorClass: undefined,
    nextTryAt: undefined,
    leaseUntil: undefined,
    unansweredSince: undefined,
    trouble: undefined,
    version: 1,
    createdAt: NOW,
    updatedAt: NOW,
    ...patch,
  };
  const lines = textFromConnection(connection).split("\n");
  const field = (name: string) =>
    lines
      .find((line) => line.startsWith(name))
      ?.slice(name.length)
      .trim();
  return { field, json: jsonFromConnection(connection) };
}

describe("a connection for a person", () => {
  it("is told to fail since when, with the last answer and the next try", () => {
    const trouble = { since: NOW - HOUR_MS };
    const failing = { failCount: 7, lastFailedAt: NOW, lastErrorClass: "server_error", nextTryAt: NOW + 1000, trouble };
    const { field, json } = shown(failing);
    expect(field("refresh failing since")).toBe(new Date(NOW - HOUR_MS).toISOString());
    expect(field("last answer")).toBe(`server_error at ${new Date(NOW).toISOString()}, failures: 7`);
    expect(field("next try")).toBe(`at the first call after ${new Date(NOW + 1000).toISOString()}`);
    expect(field("can be refreshed")).toBe("yes");
    expect(json).toMatchObject({ failingSince: field("refresh failing since"), lastFailure: "server_error" });
  });

  it("cannot be refreshed when the user must connect again", () => {
    const { field } = shown({ state: "REAUTHORIZATION_REQUIRED", stateReason: "invalid_grant" });
    expect(field("state")).toBe("REAUTHORIZATION_REQUIRED (invalid_grant)");
    expect(field("can be refreshed")).toBe("no");
  });

  it("is told to be refused since when, where there is no refresh token", () => {
    const { field, json } = shown({ refreshToken: undefined, trouble: { since: NOW - HOUR_MS } });
    expect(field("token refused since")).toBe(new Date(NOW - HOUR_MS).toISOString());
    expect(json).toMatchObject({ tokenRefusedSince: field("token refused since"), failingSince: null });
  });

  it("says nothing of failures while there are none", () => {
    const { field } = shown({});
    expect([field("refresh failing since"), field("last answer"), field("next try")]).toEqual(Array(3).fill(undefined));
    expect(field("can be refreshed")).toBe("yes");
  });
});

describe("the last refreshes for a person", () => {
  it("are a table under the connection, and nothing where there was none", () => {
    const failed = { at: NOW, outcome: "failed", cause: "due", answer: "no_answer", durationMs: 8000 } as const;
    const refreshed = { ...failed, outcome: "refreshed", answer: "", durationMs: 12 } as const;
    const [blank, table = ""] = textFromAttempts([refreshed, failed].map(jsonFromAttempt));
    const rows = table.split("\n").map((line) => line.split(/ {2,}/));
    expect([blank, textFromAttempts([])]).toEqual(["", []]);
    expect(rows.slice(1)).toEqual([
      [new Date(NOW).toISOString(), "refreshed", "due", "token", "12 ms"],
      [new Date(NOW).toISOString(), "failed", "due", "no_answer", "8000 ms"],
    ]);
  });
});
