import type { LookupAddress } from "node:dns";
import { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { createResolver, decideDial } from "../../src/upstream/connector.js";
import { answer } from "../support/raw-provider.js";
import { startFakeDns } from "./fake-dns.js";
import { failureOf, get, provider, textOf, upstream, within } from "./upstream-for-test.js";

const LOOPBACK: LookupAddress = { address: "127.0.0.1", family: 4 };
const ok = () => provider((socket) => socket.write(answer("ok")));

describe("decideDial()", () => {
  const https = { protocol: "https:", port: 8080, allowPrivateNetwork: true };
  const listening = (address: string, port = 8080) => ({
    allowLoopback: true,
    selfAddresses: () => [{ address, port }],
  });

  it.each([
    ["127.0.0.1", "127.0.0.1"],
    ["127.0.0.1", "::ffff:127.0.0.1"],
    ["::ffff:127.0.0.1", "127.0.0.1"],
    ["::1", "0:0:0:0:0:0:0:1"],
    ["10.0.0.5", "10.0.0.5"],
    ["0.0.0.0", "127.0.0.1"],
    ["0.0.0.0", "127.9.9.9"],
    ["::", "127.0.0.1"],
    ["::", "::1"],
    ["::", "::ffff:127.0.0.1"],
  ])("denies the relay itself: listening on %s, dialling %s", (listener, address) => {
    expect(decideDial(address, listening(listener), https)).toEqual({ result: "deny", rule: "self" });
  });

  it("denies every address of the machine when the relay listens on all of them", () => {
    for (const { address } of Object.values(networkInterfaces()).flatMap((list) => list ?? [])) {
      expect(decideDial(address, listening("0.0.0.0"), https).result).toBe("deny");
    }
  });

  it.each([
    ["127.0.0.1", "127.0.0.2", 8080],
    ["127.0.0.1", "127.0.0.1", 8081],
    ["0.0.0.0", "10.99.99.99", 8080],
    ["0.0.0.0", "127.0.0.1", 443],
    ["::1", "127.0.0.1", 8080],
  ])("allows another place: listening on %s, dialling %s (listener's port %i)", (listener, address, port) => {
    expect(decideDial(address, listening(listener, port), https).result).toBe("allow");
  });

  it("denies cleartext to anything but loopback", () => {
    const http = { ...https, protocol: "http:" };
    const policy = { allowLoopback: true, selfAddresses: () => [] };
    expect(decideDial("8.8.8.8", policy, http)).toEqual({ result: "deny", rule: "cleartext" });
    expect(decideDial("10.0.0.1", policy, http)).toEqual({ result: "deny", rule: "cleartext" });
    expect(decideDial("127.0.0.1", policy, http).result).toBe("allow");
    expect(decideDial("::1", policy, http).result).toBe("allow");
    expect(decideDial("8.8.8.8", policy, https).result).toBe("allow");
  });
});

describe("dialling", () => {
  it("goes to the address that the resolver gave for the name", async () => {
    const peer = await ok();
    const client = upstream({ resolve: async () => [LOOPBACK] });
    expect(await textOf(client.send(get(`http://api.test:${peer.port}`), within()))).toBe("ok");
    expect(peer.requests[0]?.head).toContain(`\r\nhost: api.test:${peer.port}\r\n`);
  });

  it("asks the resolver once for each new socket, and only then", async () => {
    const peer = await ok();
    const asked: string[] = [];
    const client = upstream({
      resolve: async (hostname) => {
        asked.push(hostname);
        return [LOOPBACK];
      },
    });
    const request = get(`http://api.test:${peer.port}`);
    await client.send(request, within());
    await client.send(request, within());
    expect(asked).toEqual(["api.test"]);
    await Promise.all([client.send(request, within()), client.send(request, within())]);
    expect(asked).toEqual(["api.test", "api.test"]);
  });

  it("checks the answer it dials: a name that is rebound is refused on the next socket (N09)", async () => {
    const peer = await ok();
    const answers = [[LOOPBACK], [{ address: "10.0.0.1", family: 4 }]];
    const client = upstream({ reuse: "never", resolve: async () => answers.shift() ?? [] });
    const request = get(`http://api.test:${peer.port}`);
    expect(await textOf(client.send(request, within()))).toBe("ok");
    const error = await failureOf(client.send(request, within()), "PROVIDER_UNREACHABLE");
    expect(error.message).toMatch(/resolves to an address that is not allowed/);
    expect(error.cause).toMatchObject({ code: "ADDRESS_REFUSED", rule: "private" });
    expect(peer.accepted).toBe(1);
  });

  it.each(["http", "https"])(
    "refuses a name with one denied address among good ones, over %s (N10)",
    async (scheme) => {
      const peer = await ok();
      const client = upstream({ resolve: async () => [LOOPBACK, { address: "169.254.169.254", family: 4 }] });
      const refused = client.send(get(`${scheme}://api.test:${peer.port}`), within());
      expect((await failureOf(refused, "PROVIDER_UNREACHABLE")).cause).toMatchObject({ rule: "link-local" });
      expect(peer.accepted).toBe(0);
    },
  );

  it.each([
    ["http://127.0.0.1", "loopback"],
    ["https://127.0.0.1", "loopback"],
    ["https://[::1]", "loopback"],
    ["https://[::ffff:7f00:1]", "loopback"],
    ["https://[::ffff:a9fe:a9fe]", "ipv4-mapped"],
    ["https://10.0.0.1", "private"],
    ["https://0.0.0.0", "unspecified"],
    ["https://[::]", "unspecified"],
    ["https://169.254.169.254", "link-local"],
    ["https://[64:ff9b::7f00:1]", "nat64"],
  ])("refuses the literal %s, for which no lookup is made (N11)", async (origin, rule) => {
    const peer = await ok();
    let lookups = 0;
    const client = upstream({
      allowLoopback: false,
      resolve: async () => {
        lookups += 1;
        return [LOOPBACK];
      },
    });
    const refused = client.send(get(`${origin}:${peer.port}`), within());
    expect((await failureOf(refused, "PROVIDER_UNREACHABLE")).cause).toMatchObject({ rule });
    expect(lookups).toBe(0);
    expect(peer.accepted).toBe(0);
  });

  it("refuses loopback by name when loopback is not allowed, private network or not", async () => {
    const peer = await ok();
    const client = upstream({ allowLoopback: false });
    for (const allowPrivateNetwork of [false, true]) {
      const refused = client.send(get(`https://localhost:${peer.port}`, { allowPrivateNetwork }), within());
      expect((await failureOf(refused, "PROVIDER_UNREACHABLE")).cause).toMatchObject({ rule: "loopback" });
    }
    expect(peer.accepted).toBe(0);
  });

  it("never reaches a listener of the relay itself, by name or by address (N15)", async () => {
    const peer = await ok();
    const client = upstream({
      resolve: async () => [LOOPBACK],
      selfAddresses: () => [{ address: "0.0.0.0", port: peer.port }],
    });
    for (const host of ["api.test", "127.0.0.1"]) {
      const refused = client.send(get(`http://${host}:${peer.port}`), within());
      expect((await failureOf(refused, "PROVIDER_UNREACHABLE")).cause).toMatchObject({ rule: "self" });
    }
    expect(peer.accepted).toBe(0);
  });

  it("tries the next address when one does not answer", async () => {
    const peer = await ok();
    const client = upstream({ resolve: async () => [{ address: "127.0.0.9", family: 4 }, LOOPBACK] });
    expect(await textOf(client.send(get(`http://api.test:${peer.port}`), within()))).toBe("ok");
  });

  it("knows localhost, and comes from ::1 to 127.0.0.1", async () => {
    const peer = await ok();
    expect(await textOf(upstream().send(get(`http://localhost:${peer.port}`), within()))).toBe("ok");
  });

  it("fails with a sentence of its own for each cause", async () => {
    const peer = await ok();
    await peer.close();
    const refused = await failureOf(upstream().send(get(peer.origin), within()), "PROVIDER_UNREACHABLE");
    expect(refused.message).toMatch(/^No connection to the provider/);
    const unknown = upstream({ resolve: async () => [] }).send(get("https://api.test"), within());
    expect((await failureOf(unknown, "PROVIDER_UNREACHABLE")).message).toMatch(/could not be resolved/);
  });

  it("gives a connect up after the connect timeout", async () => {
    const client = upstream({ connectTimeoutMs: 50, dnsTimeoutMs: 10_000, resolve: () => new Promise(() => {}) });
    const error = await failureOf(client.send(get("https://api.test"), within()), "PROVIDER_UNREACHABLE");
    expect(error.message).toMatch(/^No connection/);
  });

  it("gives a name up after the DNS timeout", async () => {
    const client = upstream({ dnsTimeoutMs: 30, resolve: () => new Promise(() => {}) });
    const error = await failureOf(client.send(get("https://api.test"), within()), "PROVIDER_UNREACHABLE");
    expect(error.message).toMatch(/could not be resolved/);
  });

  it("of 50 names that hang does not hold up a good one (N13)", async () => {
    const hanging = Array.from({ length: 50 }, (_, index) => `mute${index}.test`);
    const zones = Object.fromEntries(hanging.map((name) => [name, "silence" as const]));
    const dns = await startFakeDns({ ...zones, "good.test": { a: ["127.0.0.1"] } });
    const peer = await ok();
    const client = upstream({ dnsTimeoutMs: 500, resolve: createResolver(500, [dns.server]) });
    let ended = 0;
    const calls = hanging.map(async (name) => {
      await failureOf(client.send(get(`http://${name}:${peer.port}`), within()), "PROVIDER_UNREACHABLE");
      ended += 1;
    });
    expect(await textOf(client.send(get(`http://good.test:${peer.port}`), within()))).toBe("ok");
    expect(ended).toBe(0);
    await Promise.all(calls);
    expect(peer.accepted).toBe(1);
    await dns.close();
  });
});
