import { describe, expect, it } from "vitest";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { NOW } from "../store/store-for-test.js";
import { freePort } from "../support/free-port.js";
import { verified } from "../support/webhook-receiver.js";
import { createBed, putEndpoint } from "./webhook-bed.js";

const SECOND_MS = 1000;

describe("an event", () => {
  it("is sent with POST as JSON, signed, and is gone from the store", async () => {
    const bed = createBed();
    bed.now = Date.now();
    const receiver = await bed.receiver();
    const { application, secret } = await bed.application(`${receiver.url}?tenant=1`);
    await bed.connect(application, "ada");
    expect(await bed.round()).toMatchObject([{ outcome: "delivered", statusCode: 204, error: undefined }]);
    const [event] = await receiver.arrived(1);
    if (event === undefined) throw new Error("no event");
    expect(event).toMatchObject({ method: "POST", path: "/hook?tenant=1" });
    expect(event.headers["content-type"]).toBe("application/json");
    expect(event.id).toMatch(/^msg_[0-9a-f-]{36}$/);
    expect(verified(secret, event)).toEqual({
      type: "connection.created",
      timestamp: new Date(bed.now).toISOString(),
      data: { public_key: application.publicKey, user_id: "ada", provider_name: "github" },
    });
    expect(await bed.store.webhooks.backlog(application.id)).toEqual({ waiting: 0, oldestAt: undefined });
  });

  it("is signed with the secret that was put last, and goes to the address that was", async () => {
    const bed = createBed();
    bed.now = Date.now();
    const [old, receiver] = [await bed.receiver(), await bed.receiver()];
    const { application, secret: oldSecret } = await bed.application(old.url);
    await bed.connect(application, "ada");
    const secret = await putEndpoint(bed.store, bed.sealer, application.id, receiver.url);
    await bed.round();
    expect(old.received).toEqual([]);
    const [event] = await receiver.arrived(1);
    if (event === undefined) throw new Error("no event");
    expect(() => verified(oldSecret, event)).toThrow();
    expect(verified(secret, event).type).toBe("connection.created");
  });

  it("is not written for an application that has no endpoint", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.store.webhooks.deleteEndpoint(application.id);
    await bed.connect(application, "ada");
    await putEndpoint(bed.store, bed.sealer, application.id, receiver.url);
    expect(await bed.round()).toEqual([]);
  });
});

describe("a delivery that fails", () => {
  it("is repeated after an answer of 500, with the same id and a fresh signature", async () => {
    const bed = createBed();
    bed.now = Date.now() - 6 * SECOND_MS;
    const receiver = await bed.receiver();
    const { application, secret } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    receiver.play = (response) => response.writeHead(500).end("sorry");
    expect(await bed.round()).toMatchObject([{ outcome: "retry", statusCode: 500, event: { attempts: 1 } }]);
    bed.now += 5 * SECOND_MS - 1;
    expect(await bed.round()).toEqual([]);
    bed.now += 1;
    receiver.play = (response) => response.writeHead(200).end("thanks");
    expect(await bed.round()).toMatchObject([{ outcome: "delivered", event: { attempts: 2 } }]);
    const [first, second] = await receiver.arrived(2);
    if (first === undefined || second === undefined) throw new Error("no events");
    expect(second).toMatchObject({ id: first.id, body: first.body });
    expect(second.headers["webhook-timestamp"]).not.toBe(first.headers["webhook-timestamp"]);
    expect(verified(secret, second).type).toBe("connection.created");
  });

  it("is repeated when the receiver hangs until the deadline", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    receiver.play = () => {};
    const [delivery] = await bed.round({ deadlineMs: 100 });
    expect(delivery).toMatchObject({ outcome: "retry", statusCode: undefined, error: { reason: "PROVIDER_TIMEOUT" } });
  });

  it("is repeated when nobody listens", async () => {
    const bed = createBed();
    const { application } = await bed.application(`http://127.0.0.1:${await freePort()}/hook`);
    await bed.connect(application, "ada");
    const [delivery] = await bed.round();
    expect(delivery).toMatchObject({ outcome: "retry", error: { reason: "PROVIDER_UNREACHABLE" } });
    expect(await bed.store.webhooks.backlog(application.id)).toEqual({ waiting: 1, oldestAt: NOW });
  });

  it("is given up after the tenth attempt", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    receiver.play = (response) => response.writeHead(503).end();
    const outcomes: string[] = [];
    for (const waitS of [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]) {
      bed.now += waitS * SECOND_MS;
      for (const { outcome } of await bed.round()) outcomes.push(outcome);
    }
    expect(outcomes).toEqual([...Array.from({ length: 9 }, () => "retry"), "givenUp"]);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
    expect((await bed.store.webhooks.backlog(application.id)).waiting).toBe(0);
  });

  it("follows no redirect", async () => {
    const bed = createBed();
    const [receiver, target] = [await bed.receiver(), await bed.receiver()];
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    receiver.play = (response) => response.writeHead(307, { location: target.url }).end();
    expect(await bed.round()).toMatchObject([{ outcome: "retry", statusCode: 307 }]);
    expect(receiver.received).toHaveLength(1);
    expect(target.received).toEqual([]);
  });

  it("reads no endless answer", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    receiver.play = (response) => response.writeHead(200).write(Buffer.alloc(2048));
    expect(await bed.round()).toMatchObject([{ outcome: "retry", error: { reason: "RESPONSE_TOO_LARGE" } }]);
  });

  it.each(["https://10.1.2.3/hook", "https://169.254.169.254/hook", "http://203.0.114.1/hook"])(
    "goes nowhere for %s, should the store name it",
    async (uri) => {
      const bed = createBed();
      const { application } = await bed.application(uri);
      await bed.connect(application, "ada");
      const [delivery] = await bed.round();
      expect(delivery).toMatchObject({ outcome: "retry", error: { cause: { code: "ADDRESS_REFUSED" } } });
    },
  );

  it("goes nowhere on this machine without RELAY_ALLOW_LOOPBACK", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    const [delivery] = await bed.round({ upstreamOptions: { allowLoopback: false } });
    expect(delivery).toMatchObject({ outcome: "retry", error: { cause: { rule: "loopback" } } });
    expect(receiver.received).toEqual([]);
  });

  it("is repeated, not sent, when the secret does not open", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    const [delivery] = await bed.round({ sealer: sealerForTest("other") });
    expect(delivery).toMatchObject({ outcome: "retry", error: { reason: "STORE_UNAVAILABLE" } });
    expect(receiver.received).toEqual([]);
  });
});
