import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { findCapture } from "../../../src/records/capture-store.js";
import { listCalls } from "../../../src/records/list-calls.js";
import { signCallToken } from "../../support/call-tokens.js";
import { ADMIN_TOKENS } from "../../support/harness.js";
import { answerWith, send, startViaBed, type ViaBed } from "./via-bed.js";

let bed: ViaBed;

beforeAll(async () => {
  bed = await startViaBed();
});

afterAll(() => bed.close());

describe("what is known of a request that was passed through", () => {
  it("is its record, its log line, its count and its capture, none of which has a secret", async () => {
    const captureUntil = Date.now() + 60_000;
    const application = await bed.harness.createApplication({ callerAuth: "PRIVATE_KEY", captureUntil });
    const accessToken = await bed.harness.connect(application, "ada", { providerName: "queried" });
    bed.answer = answerWith(201, { "content-type": "text/plain" }, `echo ${accessToken}`);
    const callToken = signCallToken(application);
    const body = '{"name":"a","password":"CANARY_PASSWORD"}';
    const target = bed.via(`/items/1?a=CANARY_QUERY&api_key=${callToken}`, "queried");
    const fields = { "content-type": "application/json", "content-length": String(body.length) };
    const { status, fields: answered } = await send(bed, target, { method: "POST", fields, body });
    expect(status).toBe(201);
    const callId = String(answered["x-call-id"]);
    const known = { surface: "via", provider: "queried", method: "POST", origin: `http://${bed.host}`, status: 201 };
    const sizes = { requestBytes: body.length, responseBytes: "echo [redacted]".length };

    const record = await vi.waitFor(async () => {
      const filter = { applicationId: application.id, providers: undefined, errorType: undefined };
      const { calls } = await listCalls(bed.harness.store.calls, filter, { pageSize: 10, from: undefined });
      expect(calls).toHaveLength(1);
      return calls[0];
    }, 10_000);
    expect(record).toMatchObject({ callId, path: "/items/1", queryKeys: ["a"], ...known, ...sizes });
    await expect.poll(() => bed.harness.logLines.some((line) => line.includes(callId))).toBe(true);
    const line = JSON.parse(bed.harness.logLines.find((each) => each.includes(callId)) ?? "{}");
    expect(line).toMatchObject({ msg: "call", ...known, ...sizes });

    const capture = await vi.waitFor(async () => {
      const { content } = await findCapture(bed.harness.store.captures, bed.harness.sealer, callId);
      if (content === undefined) throw new Error("not captured yet");
      return content;
    }, 10_000);
    expect(capture.request).toMatchObject({ isSent: true, method: "POST", body: { bytes: body.length } });
    expect(capture.response).toMatchObject({ statusCode: 201, body: { text: "echo [redacted]" } });

    const authorization = `Bearer ${ADMIN_TOKENS.operator}`;
    const metrics = await (await fetch(`${bed.harness.adminUrl}/metrics`, { headers: { authorization } })).text();
    expect(metrics).toMatch(
      /relay_calls_total\{provider="queried",surface="via",status_class="2xx",error_type="none"\} 1/,
    );
    const told = JSON.stringify(record) + bed.harness.logLines.join("") + metrics;
    expect(told).not.toContain("CANARY_");
    const secrets = ["CANARY_PASSWORD", accessToken, callToken.split(".")[2] as string];
    for (const secret of secrets) expect(told + JSON.stringify(capture)).not.toContain(secret);
  });

  it("counts against the limits of the application and of the connection", async () => {
    for (const limits of [{ callsPerMinute: 1 }, { connectionCallsPerMinute: 1 }]) {
      const application = await bed.harness.createApplication(limits);
      await bed.harness.connect(application, "ada", { providerName: "plain" });
      const fields = { "x-relay-public-key": application.publicKey, "x-relay-user-id": "ada" };
      expect((await send(bed, bed.via("/a"), { fields })).status).toBe(201);
      const { status, fields: answered } = await send(bed, bed.via("/a"), { fields });
      expect([status, answered["x-relay-error"]]).toEqual([429, "RATE_LIMITED"]);
      // SDKs wait as long as this says, and some give up without it.
      expect(Number(answered["retry-after"])).toBeGreaterThan(0);
    }
  });
});
