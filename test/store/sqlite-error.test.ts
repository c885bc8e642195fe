import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import { isBusy, openErrorFrom, storeErrorFrom } from "../../src/store/sqlite-error.js";

const sqliteError = (code: string) => new Database.SqliteError("CANARY text of SQLite", code);

describe("storeErrorFrom()", () => {
  it.each([
    "SQLITE_BUSY",
    "SQLITE_BUSY_SNAPSHOT",
    "SQLITE_BUSY_RECOVERY",
    "SQLITE_LOCKED",
    "SQLITE_PROTOCOL",
    "SQLITE_FULL",
    "SQLITE_READONLY",
    "SQLITE_READONLY_DBMOVED",
    "SQLITE_IOERR",
    "SQLITE_IOERR_FSYNC",
    "SQLITE_IOERR_SHMMAP",
    "SQLITE_CANTOPEN",
    "SQLITE_PERM",
    "SQLITE_CORRUPT",
    "SQLITE_CORRUPT_INDEX",
    "SQLITE_NOTADB",
    "SQLITE_NOMEM",
    "SQLITE_INTERRUPT",
  ])("translates %s by its code", (code) => {
    const error = storeErrorFrom(sqliteError(code), true) as RelayError;
    expect(error).toBeInstanceOf(RelayError);
    expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE", cause: { code } });
    expect(error.message).not.toMatch(/CANARY|SQLITE/);
  });

  it.each(["SQLITE_ERROR", "SQLITE_CONSTRAINT_CHECK", "SQLITE_MISMATCH", "SQLITE_RANGE"])(
    "leaves %s: a fault of ours",
    (code) => {
      const error = sqliteError(code);
      expect(storeErrorFrom(error, true)).toBe(error);
    },
  );

  it("leaves other errors, also those that only look like SQLite's", () => {
    for (const error of [
      new TypeError("x"),
      Object.assign(new Error("x"), { code: "SQLITE_BUSY" }),
      "text",
      undefined,
    ]) {
      expect(storeErrorFrom(error, true)).toBe(error);
    }
  });

  it("translates whatever a closed store throws", () => {
    expect(storeErrorFrom(new TypeError("The database connection is not open"), false)).toMatchObject({
      reason: "STORE_UNAVAILABLE",
    });
  });
});

describe("isBusy()", () => {
  it("is true for locks only", () => {
    for (const code of ["SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED_SHAREDCACHE", "SQLITE_PROTOCOL"]) {
      expect([code, isBusy(sqliteError(code))]).toEqual([code, true]);
    }
    for (const code of ["SQLITE_FULL", "SQLITE_IOERR_BLOCKED", "SQLITE_ERROR"])
      expect(isBusy(sqliteError(code))).toBe(false);
    expect(isBusy(new Error("database is locked"))).toBe(false);
  });
});

describe("openErrorFrom()", () => {
  it("names the file and the code, never the text", () => {
    expect(openErrorFrom("/x", sqliteError("SQLITE_CANTOPEN")).message).toBe(
      "Database /x: cannot be opened (SQLITE_CANTOPEN); check its path, its folder and its owner",
    );
    expect(openErrorFrom("/x", sqliteError("SQLITE_BUSY")).message).toContain("is locked by another process");
    for (const code of ["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"])
      expect(openErrorFrom("/x", sqliteError(code)).message).toContain("disk is full");
    expect(openErrorFrom("/x", new Error("CANARY")).message).toContain("cannot be opened (unknown error)");
  });
});
