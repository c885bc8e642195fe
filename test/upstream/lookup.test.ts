import type { LookupAddress } from "node:dns";
import { describe, expect, it } from "vitest";
import { decideAddress } from "../../src/upstream/address.js";
import { createLookup } from "../../src/upstream/connector.js";
import { AddressRefusedError } from "../../src/upstream/failure.js";

const PUBLIC: LookupAddress = { address: "93.184.216.34", family: 4 };
const PUBLIC_V6: LookupAddress = { address: "2606:2800::1", family: 6 };

function lookup(resolve: (hostname: string) => Promise<readonly LookupAddress[]>): Promise<unknown> {
  const decide = (ip: string) => decideAddress(ip, { allowLoopback: false, allowPrivateNetwork: false });
  const look = createLookup({ resolve, decide, timeoutMs: 50 });
  return new Promise((settle, reject) => {
    look("api.test", { all: true }, (error, addresses) => (error === null ? settle(addresses) : reject(error)));
  });
}

describe("createLookup()", () => {
  it("gives all addresses, as an array", async () => {
    expect(await lookup(async () => [PUBLIC, PUBLIC_V6])).toEqual([PUBLIC, PUBLIC_V6]);
  });

  it.each([
    ["10.0.0.1", "private"],
    ["127.0.0.1", "loopback"],
    ["169.254.169.254", "link-local"],
    ["::1", "loopback"],
    ["::ffff:7f00:1", "loopback"],
    ["::ffff:8.8.8.8", "ipv4-mapped"],
    ["not-an-address", "not-an-address"],
  ])("refuses %s and says the rule", async (address, rule) => {
    const refused = lookup(async () => [{ address, family: address.includes(":") ? 6 : 4 }]);
    await expect(refused).rejects.toBeInstanceOf(AddressRefusedError);
    await expect(refused).rejects.toMatchObject({ rule });
  });

  it("refuses a name for one denied address among good ones, wherever it stands", async () => {
    const denied: LookupAddress = { address: "192.168.0.1", family: 4 };
    const many = Array.from({ length: 500 }, () => PUBLIC);
    for (const list of [
      [PUBLIC, denied],
      [denied, PUBLIC],
      [...many, denied],
      [PUBLIC_V6, denied],
    ]) {
      await expect(lookup(async () => list)).rejects.toMatchObject({ rule: "private" });
    }
  });

  it("tries at most 16 of 500 addresses", async () => {
    expect(await lookup(async () => Array.from({ length: 500 }, () => PUBLIC))).toHaveLength(16);
  });

  it.each([
    ["an empty list", async () => []],
    ["a failing resolver", async () => Promise.reject(Object.assign(new Error("ESERVFAIL"), { code: "ESERVFAIL" }))],
    ["a resolver that never answers", () => new Promise<never>(() => {})],
  ])("fails for %s", async (_name, resolve) => {
    await expect(lookup(resolve)).rejects.toMatchObject({ reason: "PROVIDER_UNREACHABLE" });
  });
});
