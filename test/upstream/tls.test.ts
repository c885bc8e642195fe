import type { LookupAddress } from "node:dns";
import { connect } from "node:net";
import type { TLSSocket, TlsOptions } from "node:tls";
import { describe, expect, it } from "vitest";
import type { UpstreamOptions } from "../../src/upstream/client.js";
import { createAuthority } from "../support/certificates.js";
import { collectGarbage } from "../support/collect-garbage.js";
import { answer, type Play } from "../support/raw-provider.js";
import { failureOf, get, provider, textOf, upstream, within } from "./upstream-for-test.js";

const OURS = createAuthority("Ours");
const OTHERS = createAuthority("Others");
const NAME = "api.test";
const good = OURS.issue({ names: [NAME, "127.0.0.1"] });
const resolve = async (): Promise<LookupAddress[]> => [{ address: "127.0.0.1", family: 4 }];

const tlsProvider = (tls: TlsOptions, play: Play = (socket) => socket.write(answer("ok"))) =>
  provider(play, { tls, host: NAME });
const trusting = (options: Partial<UpstreamOptions> = {}) => upstream({ resolve, ca: OURS.ca, ...options });

describe("TLS", () => {
  it("is spoken with a provider whose certificate is good, on one socket for many calls", async () => {
    const peer = await tlsProvider(good);
    const client = trusting();
    for (let run = 0; run < 3; run += 1) expect(await textOf(client.send(get(peer.origin), within()))).toBe("ok");
    expect(peer.accepted).toBe(1);
    expect(peer.requests[0]?.head).toContain(`host: ${NAME}:${peer.port}`);
  });

  it("resumes a session on a new socket, whatever was collected in between", async () => {
    const resumed: boolean[] = [];
    const peer = await tlsProvider(good, (socket) => {
      resumed.push((socket as TLSSocket).isSessionReused());
      socket.write(answer("ok"));
    });
    const client = trusting({ reuse: "never" });
    for (let run = 0; run < 3; run += 1) {
      expect(await textOf(client.send(get(peer.origin), within()))).toBe("ok");
      await peer.openAtMost(0);
      collectGarbage();
    }
    expect(resumed).toEqual([false, true, true]);
  });

  it.each<[string, TlsOptions, Partial<UpstreamOptions>]>([
    ["an unknown authority", good, { ca: OTHERS.ca }],
    ["no authority of ours", good, { ca: "" }],
    ["another name", OURS.issue({ names: ["other.test"] }), {}],
    ["a subdomain's name", OURS.issue({ names: [`www.${NAME}`] }), {}],
    ["a wildcard that does not fit", OURS.issue({ names: [`*.${NAME}`] }), {}],
    ["no name", OURS.issue({ names: [] }), {}],
    ["an expired certificate", OURS.issue({ names: [NAME], notAfter: new Date(Date.now() - 60_000) }), {}],
    ["a certificate of tomorrow", OURS.issue({ names: [NAME], notBefore: new Date(Date.now() + 60_000) }), {}],
    ["TLS 1.1 only", { ...good, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" }, {}],
  ])("is refused with %s; not a byte of the request is sent", async (_name, tls, options) => {
    const peer = await tlsProvider(tls);
    const { ca, ...rest } = { ...options };
    const client = ca === "" ? upstream({ resolve, ...rest }) : trusting(options);
    const error = await failureOf(client.send(get(peer.origin), within()), "PROVIDER_UNREACHABLE");
    expect(error.message).toMatch(/^No secure connection/);
    await peer.openAtMost(0);
    expect(peer.accepted).toBe(1);
    expect(peer.requests).toHaveLength(0);
  });

  it("keeps refusing: 20 times, without a socket left", async () => {
    const peer = await tlsProvider(good);
    const client = trusting({ ca: OTHERS.ca });
    for (let run = 0; run < 20; run += 1) {
      await failureOf(client.send(get(peer.origin), within()), "PROVIDER_UNREACHABLE");
    }
    await peer.openAtMost(0);
    expect(peer.requests).toHaveLength(0);
  });

  it("is not given up because the environment says so", async () => {
    const peer = await tlsProvider(good);
    const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      await failureOf(upstream({ resolve }).send(get(peer.origin), within()), "PROVIDER_UNREACHABLE");
    } finally {
      if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
    }
    expect(peer.requests).toHaveLength(0);
  });

  it("is not spoken by a plain HTTP server", async () => {
    const peer = await provider((socket) => socket.write(answer("ok")), {
      onConnection: (socket) => socket.on("data", () => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n")),
    });
    const error = await failureOf(
      trusting().send(get(`https://${NAME}:${peer.port}`), within()),
      "PROVIDER_UNREACHABLE",
    );
    expect(error.message).toMatch(/^No secure connection/);
  });

  it("that ends inside an answer makes it invalid", async () => {
    const peer = await tlsProvider(good, (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", () => socket.destroy());
    });
    await failureOf(trusting().send(get(peer.origin), within()), "PROVIDER_RESPONSE_INVALID");
  });

  /** Passes everything through, and adds bytes that are no TLS record to the answer of the first request. */
  async function spoiledProvider(play: Play) {
    const peer = await tlsProvider(good, play);
    let isSpoiled = false;
    const middle = await provider(() => {}, {
      onConnection: (socket) => {
        const onward = connect(peer.port, "127.0.0.1");
        socket.pipe(onward);
        onward.on("data", (chunk) => {
          socket.write(chunk);
          if (isSpoiled || peer.requests.length === 0) return;
          isSpoiled = true;
          socket.write("this is not a TLS record");
        });
      },
    });
    return { origin: `https://${NAME}:${middle.port}`, middle };
  }

  it("that turns to garbage inside an answer makes it invalid, at once", async () => {
    const { origin } = await spoiledProvider((socket) =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
    );
    await failureOf(trusting().send(get(origin), within()), "PROVIDER_RESPONSE_INVALID");
  });

  it("that turns to garbage after an answer ends the socket; the next call takes another one", async () => {
    const { origin, middle } = await spoiledProvider((socket) => socket.write(answer("ok")));
    const client = trusting();
    expect(await textOf(client.send(get(origin), within()))).toBe("ok");
    expect(await textOf(client.send(get(origin), within()))).toBe("ok");
    expect(middle.accepted).toBe(2);
    await middle.openAtMost(1);
  });

  it("carries an answer of a megabyte", async () => {
    const body = Buffer.alloc(1_000_000, "0123456789");
    const peer = await tlsProvider(good, (socket) => socket.write(answer(body)));
    expect((await trusting().send(get(peer.origin), within())).body.concat().equals(body)).toBe(true);
  });
});
