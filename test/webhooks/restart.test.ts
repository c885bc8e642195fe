import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer } from "../../src/sealing/seal.js";
import { openSqliteStore } from "../../src/store/sqlite.js";
import { createUpstream } from "../../src/upstream/client.js";
import { createDeliverer, type Delivery } from "../../src/webhooks/deliverer.js";
import { type CliFolder, createFolder, startServe, startServiceHere } from "../cli/run-relay.js";
import { startWebhookReceiver, verified, type WebhookReceiver } from "../support/webhook-receiver.js";

const LOOPBACK = { RELAY_ALLOW_LOOPBACK: "true" };
/** A claim is given up by then. */
const CLAIM_MS = 30_000;

async function setUp(): Promise<{ folder: CliFolder; app: string; secret: string; receiver: WebhookReceiver }> {
  const folder = createFolder();
  const receiver = await startWebhookReceiver();
  onTestFinished(() => receiver.close());
  const { publicKey: app } = await folder.json(["app", "create", "Shop"]);
  const { secret } = await folder.json(["webhook", "put", "--app", app, receiver.url], { env: LOOPBACK });
  return { folder, app, secret, receiver };
}

async function connect(folder: CliFolder, app: string): Promise<void> {
  const args = ["connection", "put", "--app", app, "--user", "ada", "--provider", "github"];
  await folder.json(args, { input: '{"access_token":"canary"}' });
}

/** What the next relay on the folder would do at that time. */
async function roundAt(folder: CliFolder, time: number): Promise<Delivery[]> {
  const store = openSqliteStore(join(folder.path, "relay.db"));
  const upstream = createUpstream({ allowLoopback: true });
  const deliveries: Delivery[] = [];
  const deliverer = createDeliverer({
    webhooks: store.webhooks,
    sealer: createSealer(await loadKeyring(join(folder.path, "relay.key"), { mustExist: true })),
    upstream,
    now: () => time,
    random: () => 0,
    onDelivery: (delivery) => deliveries.push(delivery),
    onFault: (error) => expect.fail(String(error)),
  });
  await deliverer.close(60_000);
  await upstream.close();
  store.close();
  return deliveries;
}

describe("an event", () => {
  it("that was written while no relay ran is delivered by the next one", async () => {
    const { folder, app, secret, receiver } = await setUp();
    await connect(folder, app);
    expect(await folder.json(["webhook", "show", "--app", app])).toMatchObject({ waiting: 1 });
    await startServiceHere(folder, LOOPBACK);
    const [event] = await receiver.arrived(1);
    expect(event && verified(secret, event)).toMatchObject({ type: "connection.created", data: { user_id: "ada" } });
  });

  it("that a command writes reaches a relay that runs", async () => {
    const { folder, app, receiver } = await setUp();
    await startServiceHere(folder, LOOPBACK);
    await connect(folder, app);
    await receiver.arrived(1);
  });

  it("comes back when the process that was delivering it is killed", async () => {
    const { folder, app, receiver } = await setUp();
    await connect(folder, app);
    receiver.play = () => {};
    const { child } = await startServe(folder, LOOPBACK);
    await receiver.arrived(1);
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    receiver.play = (response) => response.writeHead(204).end();
    expect(await roundAt(folder, Date.now())).toEqual([]);
    expect(await roundAt(folder, Date.now() + CLAIM_MS)).toMatchObject([
      { outcome: "delivered", event: { attempts: 2 } },
    ]);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
  });
});
