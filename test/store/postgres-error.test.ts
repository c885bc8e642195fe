import { inspect } from "node:util";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import {
  isConflict,
  isConnectionLost,
  isConnectionOver,
  openErrorFrom,
  PostgresError,
  postgresErrorFrom,
  storeErrorFrom,
} from "../../src/store/postgres-error.js";

/** As PostgreSQL says it: with the row in the detail. */
function databaseError(code: string): pg.DatabaseError {
  const error = new pg.DatabaseError("CANARY text", 1, "error");
  return Object.assign(error, { code, detail: "Key (public_key)=(CANARY) already exists.", where: "CANARY" });
}

const translated = (error: unknown) => storeErrorFrom(postgresErrorFrom(error));

describe("storeErrorFrom()", () => {
  it.each([
    "08006",
    "08P01",
    "25006",
    "28P01",
    "3D000",
    "40001",
    "40003",
    "42501",
    "53300",
    "53100",
    "55P03",
    "57014",
    "57P01",
    "57P03",
    "58030",
    "XX001",
  ])("translates %s by its code or class", (code) => {
    const error = translated(databaseError(code)) as RelayError;
    expect(error).toBeInstanceOf(RelayError);
    expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE", cause: { code } });
    expect(inspect(error, { showHidden: true, depth: 9 })).not.toContain("CANARY");
    expect(error.message).not.toContain(code);
  });

  it.each(["ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN", "EPIPE", "CERT_HAS_EXPIRED"])(
    "translates %s of the system",
    (code) => {
      const error = translated(Object.assign(new Error("CANARY"), { code }));
      expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE", cause: { code } });
    },
  );

  it.each(["Connection terminated unexpectedly", "timeout exceeded when trying to connect", "Query read timeout"])(
    "translates what pg says without a code: %s",
    (text) => {
      expect(translated(new Error(text))).toMatchObject({ reason: "STORE_UNAVAILABLE" });
    },
  );

  it.each(["23505", "23514", "22021", "42601", "42P01"])("leaves %s a fault of ours, without its text", (code) => {
    const error = translated(databaseError(code));
    expect(error).toBeInstanceOf(PostgresError);
    expect(error).toMatchObject({ code });
    expect(inspect(error, { showHidden: true, depth: 9 })).not.toContain("CANARY");
  });

  it("tells that an application is gone", () => {
    expect(translated(databaseError("23503"))).toMatchObject({ reason: "INVALID_PUBLIC_KEY" });
  });

  it("leaves what is not PostgreSQL's", () => {
    const error = new TypeError("x");
    expect(storeErrorFrom(error)).toBe(error);
  });
});

describe("what an error says of its connection", () => {
  it.each([
    ["a statement that broke a rule", databaseError("23505"), { over: false, lost: false, conflict: false }],
    ["a transaction that was in the way", databaseError("40P01"), { over: false, lost: false, conflict: true }],
    ["a statement that took too long", databaseError("57014"), { over: true, lost: false, conflict: false }],
    ["a server that stops", databaseError("57P01"), { over: true, lost: true, conflict: false }],
    ["a server that became a standby", databaseError("25006"), { over: true, lost: false, conflict: false }],
    ["a reset", Object.assign(new Error(), { code: "EPIPE" }), { over: true, lost: true, conflict: false }],
    ["an end without a word", new Error("Connection terminated"), { over: true, lost: true, conflict: false }],
    ["an answer that is late", new Error("Query read timeout"), { over: true, lost: false, conflict: false }],
  ])("is judged for %s", (_what, foreign, { over, lost, conflict }) => {
    const error = postgresErrorFrom(foreign);
    expect([isConnectionOver(error), isConnectionLost(error), isConflict(error)]).toEqual([over, lost, conflict]);
  });
});

describe("openErrorFrom()", () => {
  it.each([
    ["28P01", /refuses the user or the password/],
    ["3D000", /does not exist on this server/],
    ["25006", /standby/],
    ["ECONNREFUSED", /cannot be used \(ECONNREFUSED\)/],
  ])("tells the operator what %s means, and which database", (code, text) => {
    const error = openErrorFrom("postgres://db:5432/relay", new PostgresError(code)) as Error;
    expect(error.message).toMatch(/^Database postgres:\/\/db:5432\/relay: /);
    expect(error.message).toMatch(text);
  });
});
