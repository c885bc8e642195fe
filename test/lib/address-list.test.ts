import { assert, property, uint8Array } from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesFromAddress } from "../../src/lib/address-list.js";

describe("bytesFromAddress()", () => {
  it.each([
    ["1.2.3.4", "01020304"],
    ["::", "00".repeat(16)],
    ["::1", `${"00".repeat(15)}01`],
    ["1::", `0001${"00".repeat(14)}`],
    ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008"],
    ["1:2:3:4:5:6:1.2.3.4", "00010002000300040005000601020304"],
    ["::1.2.3.4", `${"00".repeat(12)}01020304`],
    ["2001:DB8::FF", `20010db8${"00".repeat(10)}00ff`],
    ["fe80::1%1", `fe80${"00".repeat(13)}01`],
  ])("reads %s", (ip, hex) => {
    expect(Buffer.from(bytesFromAddress(ip) ?? []).toString("hex")).toBe(hex);
  });

  it("reads the shortest and the longest spelling of any IPv6 address alike", () => {
    assert(
      property(
        uint8Array({ minLength: 16, maxLength: 16, max: 1 }),
        uint8Array({ minLength: 16, maxLength: 16 }),
        (mask, random) => {
          const bytes = Buffer.from(random.map((byte, at) => byte * (mask[at] ?? 0)));
          const long = bytes.toString("hex").replaceAll(/(.{4})(?!$)/g, "$1:");
          const short = new URL(`http://[${long}]`).hostname.slice(1, -1);
          expect(Buffer.from(bytesFromAddress(long) ?? [])).toEqual(bytes);
          expect(Buffer.from(bytesFromAddress(short) ?? [])).toEqual(bytes);
        },
      ),
    );
  });
});
