import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Caller, createCallers, postRest, type Row } from "./support/callers.js";
import { callOf, protocolsAt, SCENARIOS, startWorld, type World } from "./support/scenarios.js";

const PROTOCOLS = ["REST", "Connect JSON", "Connect binary", "gRPC", "gRPC-Web"] as const;

let world: World;
let callers: ReadonlyMap<string, Caller>;

beforeAll(async () => {
  world = await startWorld();
  callers = new Map(createCallers(world.harness.url));
});

afterAll(() => world.harness.close());

/**
 * What the same call must say over every protocol: everything but the id, the time, and the note that a Value rounded
 * a number, which only the typed protocols need. protobuf leaves an empty contentType and empty headers out.
 */
function comparable({ callId: _id, dataRounded: _rounded, headers, contentType, ...row }: Row) {
  const { Date: _date, ...fields } = (headers ?? {}) as Record<string, string>;
  return { ...row, contentType: contentType ?? "", headers: fields };
}

const TRIED = SCENARIOS.map((scenario, at) => ({ ...scenario, protocols: protocolsAt(PROTOCOLS, at) }));

describe.each(TRIED)("$name", ({ protocols, ...scenario }) => {
  const test = scenario.isWaiting ? it.concurrent : it;
  let expected: unknown;

  test.each(protocols)("gives the same row over %s", async (protocol) => {
    const row = await (callers.get(protocol) as Caller)(callOf(world, scenario));
    expect(row).toMatchObject(scenario.row);
    expect(JSON.stringify(row)).not.toContain(world.token);
    expect(row["callId"]).toMatch(/^[0-9a-f-]{36}$/);
    expected ??= comparable(row);
    expect(comparable(row)).toEqual(expected);
  });
});

describe("big numbers", () => {
  const call = (to: string, extra = {}) => callOf(world, { name: "", to, row: {}, ...extra });

  it("come back as the provider wrote them on the JSON route", async () => {
    const { text } = await postRest(world.harness.url, call("/bigint"));
    expect(text).toContain('"data":{"id":9007199254740993,"v":1.0,"b":1,"a":2}');
  });

  it.each(PROTOCOLS.slice(1))("are told to be rounded over %s", async (protocol) => {
    const row = await (callers.get(protocol) as Caller)(call("/bigint"));
    expect(row).toMatchObject({ data: { id: 9007199254740992, v: 1, b: 1, a: 2 }, dataRounded: true });
  });

  it.each(PROTOCOLS)("are exact as bytes over %s", async (protocol) => {
    const row = await (callers.get(protocol) as Caller)(
      call("/bigint", { outer: { responseMode: "RESPONSE_MODE_BODY" } }),
    );
    expect(Buffer.from(row["body"] as string, "base64").toString()).toBe('{"id":9007199254740993,"v":1.0,"b":1,"a":2}');
    expect(row).not.toHaveProperty("data");
  });
});

describe.skipIf(process.env["TEST_DATABASE"] === "postgres")("what is kept in files", () => {
  it("never has a token or a key in the clear, in no file of the store", () => {
    const files = readdirSync(world.harness.folder).filter((name) => name.startsWith("relay.db"));
    expect(files).toEqual(expect.arrayContaining(["relay.db", "relay.db-wal"]));
    for (const name of files) {
      const bytes = readFileSync(join(world.harness.folder, name));
      for (const secret of [
        "CANARY",
        world.application.privateKey,
        Buffer.from(world.token).toString("base64").slice(4, -4),
      ]) {
        expect(bytes.includes(secret)).toBe(false);
      }
      expect(statSync(join(world.harness.folder, name)).mode & 0o077).toBe(0);
    }
  });
});

describe("what leaves the relay", () => {
  it("never has a token in a log line", async () => {
    const { logLines } = world.harness;
    await expect.poll(() => logLines.length).toBeGreaterThan(TRIED.flatMap(({ protocols }) => protocols).length);
    const log = logLines.join("");
    expect(log).not.toContain("CANARY");
    expect(log).not.toContain(world.application.privateKey);
  });
});
