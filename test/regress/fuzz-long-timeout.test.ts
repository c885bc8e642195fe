import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness } from "../support/harness.js";

// Found by `npm run fuzz -- --only raw`: a timeout that no timer can hold made Node.js print a warning for every call.

let harness: Harness;
const warnings: Error[] = [];
const collect = (warning: Error) => void warnings.push(warning);

beforeAll(async () => {
  harness = await startHarness();
  process.on("warning", collect);
});

afterAll(async () => {
  process.off("warning", collect);
  await harness.close();
});

describe("a timeout that no timer can hold", () => {
  it.each([
    ["application/json", "connect-timeout-ms", "2147483648"],
    ["application/json", "connect-timeout-ms", "9999999999"],
    ["application/grpc-web+json", "grpc-timeout", "99999999H"],
    ["application/grpc-web+json", "grpc-timeout", "99999999S"],
  ])("is refused without a warning in %s %s: %s", async (type, name, value) => {
    const headers = { "content-type": type, [name]: value };
    const url = `${harness.url}/relay.v1.RelayService/Call`;
    const answer = await fetch(url, { method: "POST", headers, body: "\0\0\0\0\x02{}" });
    expect(await answer.text()).toMatch(/must(?:%20| )be/);
    // Warnings are emitted in the next tick.
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toEqual([]);
  });

  it("is taken as long as a timer holds it", async () => {
    const headers = { "content-type": "application/json", "connect-timeout-ms": "86400000" };
    const answer = await fetch(`${harness.url}/relay.v1.RelayService/Call`, { method: "POST", headers, body: "{}" });
    expect(answer.status).toBe(200);
  });
});
