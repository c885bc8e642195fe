import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/config.js";
import {
  DATABASE_FORMAT,
  parseDatabaseLocation,
  textFromDatabaseLocation,
} from "../../src/config/database-location.js";

const CANARY = "CANARY-pass%2Fword";

describe("parseDatabaseLocation()", () => {
  it.each([
    ["a path", "sqlite:data/relay.db", { kind: "sqlite", path: "data/relay.db" }],
    [
      "a remote server, whose certificate is verified",
      "postgres://u:p@db.example.com/relay",
      { host: "db.example.com", port: 5432, user: "u", database: "relay", sslMode: "verify-full", options: undefined },
    ],
    ["this machine", "postgres://u@localhost:6432/relay", { port: 6432, sslMode: "disable", password: undefined }],
    ["IPv6", "postgresql://u@[::1]/relay", { host: "::1", sslMode: "disable" }],
    ["a Unix socket", "postgres://u@localhost/relay?host=/run/postgresql", { host: "/run/postgresql" }],
    ["TLS as it is told", "postgres://u@db/relay?sslmode=disable", { host: "db", sslMode: "disable" }],
    [
      "certificates",
      "postgres://u@db/relay?sslmode=verify-ca&sslrootcert=ca.pem&sslcert=c.pem&sslkey=k.pem",
      { sslMode: "verify-ca", sslRootCert: "ca.pem", sslCert: "c.pem", sslKey: "k.pem" },
    ],
    ["session options", "postgres://u@db/relay?options=-c%20search_path%3Drelay", { options: "-c search_path=relay" }],
    ["encoded parts", "postgres://u%40x@db/re%20lay", { user: "u@x", database: "re lay" }],
  ])("reads %s", (_what, text, expected) => {
    expect(parseDatabaseLocation(text)).toMatchObject(expected);
  });

  it.each([
    "",
    "sqlite:",
    "data/relay.db",
    "mysql://u@h/d",
    "postgres:",
    "postgres://",
    "postgres://db/relay",
    "postgres://u@db",
    "postgres://u@db/",
    "postgres://u@db:99999/relay",
    "postgres://u:%zz@db/relay",
    "postgres://u@db/relay?sslmode=prefer",
    "postgres://u@db/relay?sslmode=",
    "postgres://u@db/relay?unknown=1",
  ])("refuses %j", (text) => {
    expect(parseDatabaseLocation(text)).toBeUndefined();
  });
});

describe("a password in RELAY_DATABASE", () => {
  it("is not in the text of the location, nor in what prints it", () => {
    const location = parseDatabaseLocation(`postgres://user:${CANARY}@db.example.com/relay?sslrootcert=${CANARY}`);
    if (location?.kind !== "postgres") throw new Error("expected a location");
    expect(textFromDatabaseLocation(location)).toBe("postgres://db.example.com:5432/relay");
    expect(location.password?.reveal()).toBe("CANARY-pass/word");
    const printed = [inspect(location.password, { showHidden: true, depth: 9 }), JSON.stringify(location.password)];
    expect(printed.join()).not.toContain("CANARY");
  });

  it("is not in the problem of a setting that is wrong", () => {
    const parsed = parseConfig({ RELAY_DATABASE: `postgres://user:${CANARY}@db/relay?sslmode=prefer` });
    expect(parsed).toEqual({ problems: [`RELAY_DATABASE: expected ${DATABASE_FORMAT}`] });
  });
});
