import { describe, expect, it, onTestFinished, vi } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import { NOW } from "../store/store-for-test.js";
import { createBed } from "./webhook-bed.js";

const SECOND_MS = 1000;
/** A claim is given up by then. */
const CLAIM_MS = 30 * SECOND_MS;

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
  it("delivers what is written while it runs within a second", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    bed.deliverer();
    await bed.connect(application, "ada");
    vi.advanceTimersByTime(1000);
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
    // Whatever it had begun would be under way now.
    await deliverer.close(60_000);
    expect(receiver.received).toHaveLength(1);
    expect(deliverer.deliveries).toMatchObject([{ outcome: "delivered" }]);
    expect((await bed.store.webhooks.backlog(application.id)).waiting).toBe(1);
  });

  it.each([
    ["first", []],
    ["last", [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]],
  ])("ends what is under way after the grace, and leaves it to the next one: the %s attempt", async (_, waitsS) => {
    const bed = createBed();
    const receiver = await bed.receiver();
    const { application } = await bed.application(receiver.url);
    await bed.connect(application, "ada");
    receiver.play = (response) => response.writeHead(500).end();
    for (const waitS of waitsS) {
      await bed.round();
      bed.now += waitS * SECOND_MS;
    }
    receiver.play = () => {};
    const deliverer = bed.deliverer();
    await receiver.arrived(waitsS.length + 1);
    await deliverer.close(0);
    expect(deliverer.deliveries).toMatchObject([{ outcome: "retry", error: expect.any(RelayError) }]);
    receiver.play = (response) => response.writeHead(204).end();
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

  it("is not taken by Node.js for a leak while many receivers hang", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const bed = createBed();
    const receiver = await bed.receiver();
    receiver.play = () => {};
    for (let count = 0; count < 12; count += 1) {
      const { application } = await bed.application(receiver.url);
      await bed.connect(application, "ada");
    }
    const deliverer = bed.deliverer();
    await receiver.arrived(12);
    await deliverer.close(0);
    expect(warnings).toEqual([]);
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
