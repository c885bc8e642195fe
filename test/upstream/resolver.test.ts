import { afterEach, describe, expect, it } from "vitest";
import { createResolver, type Resolve } from "../../src/upstream/connector.js";
import { type FakeDns, startFakeDns, type Zone } from "./fake-dns.js";

let dns: FakeDns;

afterEach(() => dns.close());

async function resolverFor(zones: Readonly<Record<string, Zone>>, timeoutMs = 2000): Promise<Resolve> {
  dns = await startFakeDns(zones);
  return createResolver(timeoutMs, [dns.server]);
}

describe("createResolver()", () => {
  it("answers IPv4 and IPv6 addresses together", async () => {
    const resolve = await resolverFor({
      "api.test": { a: ["1.2.3.4", "5.6.7.8"], aaaa: [`2606${"00".repeat(13)}01`] },
    });
    expect(await resolve("api.test", false)).toEqual([
      { address: "1.2.3.4", family: 4 },
      { address: "5.6.7.8", family: 4 },
      { address: "2606::1", family: 6 },
    ]);
  });

  it("is content with one of the two", async () => {
    const resolve = await resolverFor({
      "four.test": { a: ["1.2.3.4"] },
      "six.test": { aaaa: [`2606${"00".repeat(14)}`] },
    });
    expect(await resolve("four.test", false)).toEqual([{ address: "1.2.3.4", family: 4 }]);
    expect(await resolve("six.test", false)).toEqual([{ address: "2606::", family: 6 }]);
  });

  it("rejects a name that does not exist, has no address, fails or goes in a circle", async () => {
    const resolve = await resolverFor({
      "empty.test": {},
      "broken.test": "SERVFAIL",
      "loop.test": { cname: "loop.test" },
    });
    await expect(resolve("missing.test", false)).rejects.toMatchObject({ code: "ENOTFOUND" });
    await expect(resolve("empty.test", false)).rejects.toMatchObject({ code: "ENODATA" });
    await expect(resolve("broken.test", false)).rejects.toMatchObject({ code: "ESERVFAIL" });
    await expect(resolve("loop.test", false)).rejects.toThrow();
  });

  it("gives a name up within its budget", async () => {
    const resolve = await resolverFor({ "mute.test": "silence" }, 200);
    await expect(resolve("mute.test", false)).rejects.toMatchObject({ code: "ETIMEOUT" });
  });

  it("answers a name at once while 50 others hang", async () => {
    const hanging = Array.from({ length: 50 }, (_, index) => `mute${index}.test`);
    const zones = Object.fromEntries(hanging.map((name) => [name, "silence" as const]));
    const resolve = await resolverFor({ ...zones, "good.test": { a: ["1.2.3.4"] } }, 400);
    let given = 0;
    const others = hanging.map((name) => resolve(name, true).catch(() => (given += 1)));
    expect(await resolve("good.test", false)).toHaveLength(1);
    expect(given).toBe(0);
    await Promise.all(others);
    expect(given).toBe(50);
  });

  it("knows localhost without asking anybody", async () => {
    const resolve = await resolverFor({});
    for (const name of ["localhost", "api.localhost"]) {
      expect(await resolve(name, false)).toEqual([
        { address: "127.0.0.1", family: 4 },
        { address: "::1", family: 6 },
      ]);
    }
    expect(dns.queries).toEqual([]);
  });
});
