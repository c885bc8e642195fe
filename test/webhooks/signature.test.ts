import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { Secret } from "../../src/sealing/seal.js";
import { createWebhookSecret, signatureFields } from "../../src/webhooks/webhook-store.js";

const PAYLOAD = '{"type":"connection.created","data":{"user_id":"zoë 🙂"}}';

function headersOf(secret: Secret, id: string, payload: string, now: number): Record<string, string> {
  const fields = signatureFields({ id, payload }, secret, now);
  return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ""]] : [])));
}

describe("signatureFields()", () => {
  it("signs the example of the specification's library as that does", () => {
    const secret = new Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    expect(headersOf(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}', 1_614_265_330_999)).toEqual({
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  it("is verified by the specification's library, text beyond ASCII included", () => {
    const secret = createWebhookSecret();
    const headers = headersOf(secret, "msg_1", PAYLOAD, Date.now());
    expect(new Webhook(secret.reveal()).verify(PAYLOAD, headers)).toEqual(JSON.parse(PAYLOAD));
  });

  it.each([
    ["another payload", "webhook-id", "msg_1", `${PAYLOAD} `],
    ["another id", "webhook-id", "msg_2", PAYLOAD],
    ["another time", "webhook-timestamp", String(Math.floor(Date.now() / 1000) - 2), PAYLOAD],
  ])("is not the signature of %s", (_, field, value, payload) => {
    const secret = createWebhookSecret();
    const headers = { ...headersOf(secret, "msg_1", PAYLOAD, Date.now()), [field]: value };
    expect(() => new Webhook(secret.reveal()).verify(payload, headers)).toThrow("No matching signature found");
  });
});

describe("createWebhookSecret()", () => {
  it("makes 32 random octets in base64 behind whsec_, and prints as redacted", () => {
    const [one, other] = [createWebhookSecret(), createWebhookSecret()];
    expect(one.reveal()).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(one.reveal()).not.toBe(other.reveal());
    expect(`${one} ${JSON.stringify(one)}`).toBe('[redacted] "[redacted]"');
  });
});
