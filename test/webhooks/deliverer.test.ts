import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { RelayError } from "../../src/errors.js";
import { NOW } from "../store/store-for-test.js";
import { verified } from "../support/webhook-receiver.js";
import { sealerForTest } from "../tokens/sealer-for-test.js";
import { createBed, putEndpoint } from "./webhook-bed.js";

const SECOND_MS = 1000;
/** A claim is given up by then. */
const CLAIM_MS = 30 * SECOND_MS;

/** A port of 127.0.0.1 on which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

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
    const { application } = await bed.application(`http://127.0.0.1:${await closedPort()}/hook`);
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

describe("the events of an application", () => {
  it("come one after another, in order, also when the first one had to be repeated", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    for (const user of ["a", "b", "c"]) await bed.connect(application, user);
    receiver.play = (response) => response.writeHead(503).end();
    await bed.round();
    bed.now += SECOND_MS;
    expect(await bed.round()).toEqual([]);
    receiver.play = (response) => response.writeHead(204).end();
    bed.now += 4 * SECOND_MS;
    const deliverer = bed.deliverer();
    await receiver.arrived(4);
    await deliverer.close(60_000);
    expect(receiver.received.map(({ body }) => JSON.parse(body).data.user_id)).toEqual(["a", "a", "b", "c"]);
  });

  it("are not held up by one that the receiver refuses", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    for (const user of ["refused", "b"]) await bed.connect(application, user);
    receiver.play = (response, { body }) => response.writeHead(body.includes("refused") ? 500 : 204).end();
    await bed.round();
    bed.now += 5 * SECOND_MS;
    await bed.round();
    bed.now += 10 * SECOND_MS;
    expect(await bed.round()).toMatchObject([{ outcome: "delivered" }]);
    expect((await bed.store.webhooks.backlog(application.id)).waiting).toBe(1);
  });

  it("are not held up by another application whose receiver hangs", async () => {
    const bed = createBed();
    const [hanging, receiver] = [await bed.receiver(), await bed.receiver()];
    hanging.play = () => {};
    for (let count = 0; count < 3; count += 1) {
      const { application } = await bed.application(hanging.url);
      for (const user of ["a", "b"]) await bed.connect(application, user);
    }
    const { application } = await bed.application(receiver.url);
    for (const user of ["a", "b", "c", "d"]) await bed.connect(application, user);
    bed.deliverer();
    await receiver.arrived(4);
    await hanging.arrived(3);
    expect(hanging.received).toHaveLength(3);
  });

  it("wait while it is disabled", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    await bed.store.applications.update(application.publicKey, { state: "DISABLED" }, NOW);
    expect(await bed.round()).toEqual([]);
    await bed.store.applications.update(application.publicKey, { state: "ACTIVE" }, NOW);
    expect(await bed.round()).toMatchObject([{ outcome: "delivered" }]);
  });

  it("end with it, also the one that is under way", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    for (const user of ["a", "b"]) await bed.connect(application, user);
    let refuse = () => {};
    receiver.play = (response) => {
      refuse = () => response.writeHead(500).end();
    };
    const deliverer = bed.deliverer();
    await receiver.arrived(1);
    await bed.store.applications.delete(application.publicKey);
    refuse();
    await deliverer.close(60_000);
    expect(deliverer.faults).toEqual([]);
    bed.now += CLAIM_MS;
    expect(await bed.round()).toEqual([]);
    expect(await bed.store.webhooks.backlog(application.id)).toEqual({ waiting: 0, oldestAt: undefined });
  });
});

describe("a deliverer", () => {
  it("delivers what is written while it runs, once it is nudged", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    const deliverer = bed.deliverer();
    await bed.connect(application, "ada");
    deliverer.nudge();
    await receiver.arrived(1);
  });

  it("waits at its end for what is under way, and begins no more", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    for (const user of ["a", "b"]) await bed.connect(application, user);
    let answer = () => {};
    receiver.play = (response) => {
      answer = () => response.writeHead(204).end();
    };
    const deliverer = bed.deliverer();
    await receiver.arrived(1);
    const closed = deliverer.close(60_000);
    receiver.play = (response) => response.writeHead(204).end();
    answer();
    await closed;
    deliverer.nudge();
    // Whatever it had begun would be under way now.
    await deliverer.close(60_000);
    expect(receiver.received).toHaveLength(1);
    expect(deliverer.deliveries).toMatchObject([{ outcome: "delivered" }]);
    expect((await bed.store.webhooks.backlog(application.id)).waiting).toBe(1);
  });

  it("ends what is under way after the grace, and leaves it to the next one", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    receiver.play = () => {};
    const deliverer = bed.deliverer();
    await receiver.arrived(1);
    await deliverer.close(0);
    expect(deliverer.deliveries).toMatchObject([{ outcome: "retry", error: expect.any(RelayError) }]);
    receiver.play = (response) => response.writeHead(204).end();
    bed.now += 5 * SECOND_MS;
    expect(await bed.round()).toMatchObject([{ outcome: "delivered" }]);
  });

  it("leaves what it cannot finish to the next one, when its claim has ended", async () => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    const lost = new RelayError("STORE_UNAVAILABLE", "for test");
    const halted = bed.deliverer({ webhooks: { ...bed.store.webhooks, finish: () => Promise.reject(lost) } });
    await halted.close(60_000);
    expect(halted.faults).toEqual([lost]);
    bed.now += CLAIM_MS - 1;
    expect(await bed.round()).toEqual([]);
    bed.now += 1;
    expect(await bed.round()).toMatchObject([{ outcome: "delivered", event: { attempts: 2 } }]);
    const [first, second] = await receiver.arrived(2);
    expect(second?.id).toBe(first?.id);
  });

  it("survives a store that cannot be used, and tells of it", async () => {
    const bed = createBed();
    bed.store.close();
    const deliverer = bed.deliverer();
    await deliverer.close(60_000);
    expect(deliverer.faults).toMatchObject([{ reason: "STORE_UNAVAILABLE" }]);
  });

  it("delivers each event once beside another one on the same store", async () => {
    const bed = createBed();
    const receivers = await Promise.all([bed.receiver(), bed.receiver(), bed.receiver()]);
    for (const { url } of receivers) {
      const { application } = await bed.application(url);
      for (let user = 0; user < 10; user += 1) await bed.connect(application, `u${user}`);
    }
    const deliverers = [bed.deliverer(), bed.deliverer()];
    await Promise.all(receivers.map((receiver) => receiver.arrived(10)));
    for (const deliverer of deliverers) await deliverer.close(60_000);
    for (const { received } of receivers) expect(new Set(received.map(({ id }) => id)).size).toBe(received.length);
    expect(deliverers.flatMap(({ deliveries }) => deliveries)).toHaveLength(30);
  });
});
