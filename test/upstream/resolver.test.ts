import { afterEach, describe, expect, it, vi } from "vitest";
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

  it("asks again only when an answer is older than it says of itself, and than five minutes", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      const resolve = await resolverFor({
        "minute.test": { a: ["1.2.3.4"], aaaa: [`2606${"00".repeat(14)}`], ttl: 60 },
        "day.test": { a: ["1.2.3.4"], ttl: 86_400 },
        "zero.test": { a: ["1.2.3.4"] },
      });
      const asked = async (name: string) => {
        const before = dns.queries.length;
        expect(await resolve(name, false)).toContainEqual({ address: "1.2.3.4", family: 4 });
        return dns.queries.length > before;
      };
      expect([await asked("minute.test"), await asked("day.test"), await asked("zero.test")]).not.toContain(false);
      expect(await asked("zero.test")).toBe(true);
      vi.advanceTimersByTime(59_000);
      expect(await asked("minute.test")).toBe(false);
      vi.advanceTimersByTime(2_000);
      expect(await asked("minute.test")).toBe(true);
      expect(await asked("day.test")).toBe(false);
      vi.advanceTimersByTime(240_000);
      expect(await asked("day.test")).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it("forgets the oldest of more than a thousand names, and none that there are not", async () => {
    const names = Array.from({ length: 1025 }, (_, number) => `n${number}.test`);
    const resolve = await resolverFor(Object.fromEntries(names.map((name) => [name, { a: ["1.2.3.4"], ttl: 300 }])));
    for (const name of names) await resolve(name, false);
    const before = dns.queries.length;
    await resolve("n1024.test", false);
    await resolve("n1.test", false);
    expect(dns.queries.length).toBe(before);
    await resolve("n0.test", false);
    expect(dns.queries.slice(before)).toEqual(["n0.test", "n0.test"]);
    await expect(resolve("missing.test", false)).rejects.toMatchObject({ code: "ENOTFOUND" });
    await expect(resolve("missing.test", false)).rejects.toMatchObject({ code: "ENOTFOUND" });
    expect(dns.queries.slice(before + 2).filter((name) => name === "missing.test").length).toBeGreaterThan(2);
  });

  it("keeps no answer of which one half failed", async () => {
    const resolve = await resolverFor({ "half.test": { a: ["1.2.3.4"], ttl: 300, failing: "AAAA" } });
    expect(await resolve("half.test", false)).toEqual([{ address: "1.2.3.4", family: 4 }]);
    const before = dns.queries.length;
    expect(await resolve("half.test", false)).toEqual([{ address: "1.2.3.4", family: 4 }]);
    expect(dns.queries.length).toBeGreaterThan(before);
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
