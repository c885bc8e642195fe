import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createCertificate, start } from "../http/support.js";
import { type Harness, startHarness } from "../support/harness.js";

const GOOD = "GET /healthz HTTP/1.1\r\nHost: relay.test\r\n\r\n";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({ env: { RELAY_MAX_CLIENT_CONNECTIONS: "3", RELAY_TRUSTED_PROXIES: "127.0.0.9" } });
});
afterAll(() => harness.close());

/** A connection from one of this machine's own addresses; resolves when the relay answers on it, or has closed it. */
async function open(localAddress: string, port = Number(new URL(harness.url).port)): Promise<Socket | "closed"> {
  const socket = connect({ host: "127.0.0.1", port, localAddress });
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {}); // A reset is one of the ways to be refused: 'close' follows.
  socket.write(GOOD);
  const closed = new Promise<"closed">((resolve) => socket.once("close", () => resolve("closed")));
  return Promise.race([once(socket, "data").then(() => socket), closed]);
}

const open3 = async (localAddress: string) => {
  const sockets = await Promise.all([1, 2, 3].map(() => open(localAddress)));
  for (const socket of sockets) expect(socket).not.toBe("closed");
  return sockets as Socket[];
};

describe("connections of one client", () => {
  it("are closed as they come above the limit, which other clients are not held to", async () => {
    await open3("127.0.0.2");
    expect(await open("127.0.0.2")).toBe("closed");
    await open3("127.0.0.3");
    expect(await open("127.0.0.2")).toBe("closed");
  });

  it("are 150 at the administration port, where others find a place, too", async () => {
    const port = Number(new URL(harness.adminUrl).port);
    const sockets = await Promise.all(Array.from({ length: 150 }, () => open("127.0.0.2", port)));
    for (const socket of sockets) expect(socket).not.toBe("closed");
    expect(await open("127.0.0.2", port)).toBe("closed");
    expect(await open("127.0.0.3", port)).not.toBe("closed");
  });

  it("make room for others when they end, in whatever way", async () => {
    const [ended, destroyed, reset] = await open3("127.0.0.4");
    ended?.end();
    destroyed?.destroy();
    reset?.resetAndDestroy();
    await expect.poll(async () => await open("127.0.0.4").then((socket) => socket !== "closed")).toBe(true);
    await expect.poll(async () => await open("127.0.0.4").then((socket) => socket !== "closed")).toBe(true);
    await expect.poll(async () => await open("127.0.0.4").then((socket) => socket !== "closed")).toBe(true);
    expect(await open("127.0.0.4")).toBe("closed");
  });

  it("have no limit when they are a trusted proxy's", async () => {
    await open3("127.0.0.9");
    await open3("127.0.0.9");
  });

  it("count over HTTP/2 as well", async () => {
    const port = Number(new URL(harness.url).port);
    const options = { createConnection: () => connect({ host: "127.0.0.1", port, localAddress: "127.0.0.5" }) };
    const sessions = [1, 2, 3].map(() => connectHttp2(harness.url, options));
    for (const session of sessions) onTestFinished(() => session.destroy());
    await Promise.all(sessions.map((session) => once(session, "remoteSettings")));
    expect(await open("127.0.0.5")).toBe("closed");
  });

  it("are refused before a TLS handshake, and told once for all of them", async () => {
    const { cert, key, ca } = createCertificate();
    const limits = { maxClientConnections: 1, checkIntervalMs: 20 };
    const { port, listener, fault } = await start({ tls: { cert, key }, limits });
    const options = { host: "127.0.0.1", port, ca, servername: "localhost" };
    const first = connectTls(options);
    onTestFinished(() => void first.destroy());
    await once(first, "secureConnect");
    const second = connectTls(options);
    await expect(once(second, "secureConnect")).rejects.toThrow();
    expect(await fault("connections")).toMatchObject({ message: "refused 1 over the limit of 1 per client" });
    expect(listener.connections).toEqual({ open: 1, refused: 1 });
  });
});
