import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { createAuthority } from "../support/certificates.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

let folder: string;
let harness: Harness;
let application: TestApplication;
let trust: { ca: string; servername: string };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relay-tls-"));
  const authority = createAuthority("relay test authority");
  const { cert, key } = authority.issue({ names: ["localhost"] });
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key, { mode: 0o600 });
  trust = { ca: authority.ca, servername: "localhost" };
  harness = await startHarness({
    env: { RELAY_TLS_CERT: join(folder, "cert.pem"), RELAY_TLS_KEY: join(folder, "key.pem") },
  });
  application = await harness.createApplication();
  await harness.connect(application, "ada");
});

afterAll(async () => {
  await harness.close();
  rmSync(folder, { recursive: true, force: true });
});

const port = () => Number(new URL(harness.url).port);
const me = () => ({ url: `${harness.sandbox.origin}/me`, method: "GET" });

/** The protocol that the two sides agree on. */
function negotiate(ALPNProtocols: string[] | undefined): Promise<string | false | null> {
  return new Promise((resolve, reject) => {
    const options = { ...trust, ...(ALPNProtocols === undefined ? {} : { ALPNProtocols }) };
    const socket: TLSSocket = connectTls(port(), "127.0.0.1", options, () => {
      resolve(socket.alpnProtocol);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

describe("a relay with a certificate", () => {
  it("has an https url", () => {
    expect(harness.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  });

  it("does not answer in cleartext", async () => {
    await expect(request(`http://127.0.0.1:${port()}/healthz`)).rejects.toThrow();
  });

  it("prefers HTTP/2, and speaks HTTP/1.1 to who asks for it or for nothing", async () => {
    expect(await negotiate(["http/1.1", "h2"])).toBe("h2");
    expect(await negotiate(["http/1.1"])).toBe("http/1.1");
    expect(await negotiate(undefined)).toBe(false);
  });

  it("serves the JSON route over HTTP/1.1", async () => {
    const agent = new Agent({ connect: trust });
    const target = `${harness.url}/oauth/method/sandbox/call?user_id=ada&public_key=${application.publicKey}`;
    const answer = await request(target, { dispatcher: agent, method: "POST", body: JSON.stringify(me()) });
    expect(await answer.body.json()).toMatchObject({ rows: [{ pincStatus: "success", data: { login: "ada" } }] });
    await agent.close();
  });

  it("serves health over HTTP/2", async () => {
    const session = connectHttp2(harness.url, trust);
    const stream = session.request({ ":path": "/readyz" });
    const status = await new Promise((resolve, reject) => {
      stream.on("response", (head) => resolve(head[":status"])).on("error", reject);
    });
    expect(status).toBe(200);
    expect(session.alpnProtocol).toBe("h2");
    session.destroy();
  });

  it.each<[string, () => Transport]>([
    ["gRPC", () => createGrpcTransport({ baseUrl: harness.url, nodeOptions: trust })],
    ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: harness.url, httpVersion: "1.1", nodeOptions: trust })],
    ["Connect", () => createConnectTransport({ baseUrl: harness.url, httpVersion: "2", nodeOptions: trust })],
  ])("serves %s", async (_protocol, transport) => {
    const { publicKey } = application;
    const message = { providerName: "sandbox", userId: "ada", publicKey, call: me() };
    const { rows } = await createClient(RelayService, transport()).call(message);
    expect(rows[0]).toMatchObject({ pincStatus: "success", statusCode: 200 });
  });
});
