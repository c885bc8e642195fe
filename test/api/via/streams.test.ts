import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { answerWith, bearer, readAnswer, send, sendRaw, startViaBed, type ViaBed } from "./via-bed.js";

/** More than the kernel may hold of it on both ways, some 32 MiB at each receiver. */
const MAX_BYTES = 96 * 1024 * 1024;

let bed: ViaBed;
/** What happens before a token endpoint answers. */
let duringRefresh = async () => {};

beforeAll(async () => {
  bed = await startViaBed({
    env: { RELAY_MAX_STREAM_REQUEST_BYTES: String(MAX_BYTES) },
    sandbox: { holdTokenAnswer: () => duringRefresh() },
  });
});

afterAll(() => bed.close());

afterEach(() => {
  bed.answer = answerWith(200, {}, "{}");
  duringRefresh = async () => {};
});

/** A request whose body is still to be written. */
function begin(fields: Record<string, string | number>, path = "/a", method = "POST"): ClientRequest {
  const { hostname, port } = new URL(bed.harness.url);
  const sent = request({
    hostname,
    port,
    path: bed.via(path),
    method,
    headers: { ...bearer(bed), ...fields },
    agent: false,
  });
  // What was refused or answered early may be cut while the rest of it is written.
  return sent.on("error", () => {}).setMaxListeners(0) as ClientRequest;
}

const answerTo = async (sent: ClientRequest) => readAnswer(((await once(sent, "response")) as [IncomingMessage])[0]);

/** Answers with the length and the digest of what came. */
function answerDigest(incoming: IncomingMessage, response: ServerResponse): void {
  const digest = createHash("sha256");
  let length = 0;
  incoming.on("data", (chunk: Buffer) => {
    digest.update(chunk);
    length += chunk.length;
  });
  incoming.on("end", () => response.end(`${length} ${digest.digest("hex")}`));
}

const digestOf = (bytes: Buffer) => `${bytes.length} ${createHash("sha256").update(bytes).digest("hex")}`;

describe("a body that is passed through", () => {
  it("arrives whole, with a length and in chunks, over HTTP/1.1 and HTTP/2", async () => {
    bed.answer = answerDigest;
    const body = randomBytes(5_000_003);
    expect((await send(bed, bed.via("/a"), { method: "PUT", fields: bearer(bed), body })).text).toBe(digestOf(body));
    const chunked = begin({ "transfer-encoding": "chunked" });
    for (let at = 0; at < body.length; at += 777_777) chunked.write(body.subarray(at, at + 777_777));
    chunked.end();
    expect((await answerTo(chunked)).text).toBe(digestOf(body));
    const session = connectHttp2(bed.harness.url);
    const stream = session.request({ ":method": "POST", ":path": bed.via("/a"), ...bearer(bed) });
    stream.end(body);
    let text = "";
    for await (const chunk of stream) text += chunk;
    session.close();
    expect(text).toBe(digestOf(body));
  });

  it("is refused where it is too large, by its length or when it has become so", async () => {
    const declared = begin({ "content-length": MAX_BYTES + 1 });
    declared.flushHeaders();
    expect(await answerTo(declared)).toMatchObject({ status: 413, fields: { "x-relay-error": "REQUEST_TOO_LARGE" } });
    bed.answer = (incoming) => void incoming.resume().on("error", () => {});
    const chunked = begin({ "transfer-encoding": "chunked" });
    const answered = answerTo(chunked);
    const piece = randomBytes(1024 * 1024);
    for (let at = 0; at <= MAX_BYTES; at += piece.length) {
      // The refusal closes the connection, perhaps while this waits; what counts is the answer.
      if (!chunked.write(piece)) await Promise.race([once(chunked, "drain").catch(() => {}), answered]);
    }
    expect(await answered).toMatchObject({ status: 413, fields: { "x-relay-error": "REQUEST_TOO_LARGE" } });
  });

  it("is read no faster than the provider takes it", async () => {
    let resume = () => {};
    bed.answer = (incoming, response) => {
      resume = () => answerDigest(incoming, response);
    };
    const body = Buffer.alloc(MAX_BYTES);
    const sent = begin({ "content-length": body.length });
    sent.end(body);
    await expect.poll(() => bed.received.at(-1)?.fields["content-length"]).toBe(String(body.length));
    // The kernel's buffers hold some of it; most of it waits at the caller.
    expect(sent.writableLength).toBeGreaterThan(0);
    const answered = answerTo(sent);
    resume();
    expect((await answered).text).toBe(digestOf(body));
  });

  it("may take longer than the deadline, which is for each piece of it", async () => {
    const common = bed;
    bed = await startViaBed({ env: { RELAY_DEADLINE_MS: "2000" } });
    try {
      bed.answer = answerDigest;
      const sent = begin({ "content-length": 6 });
      const answered = answerTo(sent);
      for (const piece of ["a", "b", "c", "d", "e", "f"]) {
        sent.write(piece);
        await new Promise((resolve) => setTimeout(resolve, 400));
      }
      expect((await answered).text).toBe(digestOf(Buffer.from("abcdef")));
      const silent = begin({ "content-length": 6 });
      silent.write("a");
      expect(await answerTo(silent)).toMatchObject({ status: 504, fields: { "x-relay-error": "PROVIDER_TIMEOUT" } });
    } finally {
      await bed.close();
      bed = common;
    }
  });

  it("goes out on a new connection where the provider has closed the kept one", async () => {
    const sockets = new Set<object>();
    bed.answer = (incoming, response) => {
      sockets.add(incoming.socket);
      // Said of neither answer: the relay learns of it when it writes the next request.
      response.on("finish", () => setImmediate(() => incoming.socket.destroy()));
      answerDigest(incoming, response);
    };
    const body = randomBytes(300_000);
    for (let count = 1; count <= 3; count++) {
      const answer = await send(bed, bed.via("/a"), { method: "PUT", fields: bearer(bed), body });
      expect(answer).toMatchObject({ status: 200, text: digestOf(body) });
      expect(sockets.size).toBe(count);
    }
  });

  it("that is not as long as it says never becomes a whole request", async () => {
    let ends = 0;
    bed.answer = (incoming, response) => {
      incoming.on("error", () => {}).resume();
      incoming.on("end", () => {
        ends += 1;
        response.end("{}");
      });
    };
    for (const length of ["2", "10"]) {
      // Node.js 26 ends the whole session of such a client.
      const session = connectHttp2(bed.harness.url).on("error", () => {});
      const fields = { ":method": "POST", ":path": bed.via("/a"), "content-length": length, ...bearer(bed) };
      const stream = session.request(fields);
      const closed = once(stream.on("error", () => {}).resume(), "close").catch(() => {});
      stream.end("abc");
      await closed;
      session.close();
    }
    expect(ends).toBe(0);
  });

  it("may come from a client of HTTP/1.0", async () => {
    bed.answer = answerDigest;
    const fields = `Host: relay\r\nAuthorization: ${bearer(bed)["authorization"]}\r\nContent-Length: 3\r\n\r\n`;
    const text = await sendRaw(bed, `POST ${bed.via("/a")} HTTP/1.0\r\n${fields}abc`);
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(text.toLowerCase()).not.toContain("transfer-encoding");
    expect(text.endsWith(digestOf(Buffer.from("abc")))).toBe(true);
  });

  it("is not asked for where a client of HTTP/1.0 says that it waits for that", async () => {
    bed.answer = answerDigest;
    const fields = `Host: relay\r\nAuthorization: ${bearer(bed)["authorization"]}\r\nContent-Length: 3\r\n`;
    const text = await sendRaw(bed, `POST ${bed.via("/a")} HTTP/1.0\r\n${fields}Expect: 100-continue\r\n\r\nabc`);
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(text.endsWith(digestOf(Buffer.from("abc")))).toBe(true);
  });

  it("is asked for once the provider is ready, where the caller waits for that", async () => {
    bed.answer = answerDigest;
    const sent = begin({ "content-length": 3, expect: "100-continue" });
    sent.flushHeaders();
    await once(sent, "continue");
    const answered = answerTo(sent);
    sent.end("abc");
    expect((await answered).text).toBe(digestOf(Buffer.from("abc")));
    expect(bed.received.at(-1)?.fields).not.toHaveProperty("expect");
  });

  it("is not asked for by a refusal", async () => {
    const target = bed.via("/a/../b");
    const head = `POST ${target} HTTP/1.1\r\nHost: relay\r\nExpect: 100-continue\r\nContent-Length: 3\r\n`;
    const text = await sendRaw(bed, `${head}Authorization: ${bearer(bed)["authorization"]}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 403 /);
    expect(text).not.toContain("100 Continue");
    const session = connectHttp2(bed.harness.url);
    const stream = session.request({ ":method": "POST", ":path": target, expect: "100-continue", ...bearer(bed) });
    const asked = { ok: false };
    stream.on("continue", () => (asked.ok = true)).resume();
    const fields = await new Promise<Record<string, unknown>>((resolve) => stream.once("response", resolve));
    expect({ status: fields[":status"], asked: asked.ok }).toEqual({ status: 403, asked: false });
    stream.close();
    session.close();
  });
});

describe("an answer that comes before the end of the body", () => {
  it.each([200, 413])("reaches the caller with its status %s, whole, and ends the upload", async (status) => {
    bed.answer = (incoming, response) => {
      incoming.once("data", () => response.writeHead(status, { "content-type": "text/plain" }).end("early"));
      incoming.on("error", () => {});
    };
    const sent = begin({ "content-length": MAX_BYTES });
    const answered = answerTo(sent);
    sent.write(randomBytes(100_000));
    expect(await answered).toMatchObject({ status, text: "early" });
    const socket = sent.socket;
    if (socket !== null && !socket.destroyed) await once(socket, "close");
  });

  it.each([
    ["1.1", "Connection: close\r\n"],
    ["1.0", ""],
  ])("reaches a caller of HTTP/%s that writes on before it reads, on its last request", async (version, field) => {
    const early = "z".repeat(1_000_000);
    bed.answer = (incoming, response) => {
      incoming.once("data", () => response.end(early));
      incoming.on("error", () => {}).resume();
    };
    const { hostname, port } = new URL(bed.harness.url);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    const fields = `Host: relay\r\nAuthorization: ${bearer(bed)["authorization"]}\r\nContent-Length: ${MAX_BYTES}\r\n`;
    socket.write(`POST ${bed.via("/a")} HTTP/${version}\r\n${fields}${field}\r\n`);
    socket.write(Buffer.alloc(1000, "!"));
    await once(socket, "readable");
    for (let pieces = 0; pieces < 200 && !socket.destroyed; pieces++) {
      await new Promise((resolve) => socket.write(Buffer.alloc(65_536, "!"), resolve));
    }
    let text = "";
    for await (const chunk of socket) text += String(chunk);
    // No length of a chunk has this letter.
    expect(text.slice(text.indexOf("\r\n\r\n")).replace(/[^z]/g, "")).toHaveLength(early.length);
  });

  it("may go on beside the body, in both directions at once", async () => {
    bed.answer = (incoming, response) => void incoming.pipe(response);
    const sent = begin({ "transfer-encoding": "chunked" });
    const responding = once(sent, "response") as Promise<[IncomingMessage]>;
    sent.write("##1##");
    const [response] = await responding;
    expect(String((await once(response, "data"))[0])).toBe("##1##");
    sent.write("##2##");
    expect(String((await once(response, "data"))[0])).toBe("##2##");
    sent.end();
    await once(response.resume(), "end");
  });

  it("resets no more than the rest of the request over HTTP/2", async () => {
    bed.answer = (incoming, response) => {
      incoming.once("data", () => response.end("early"));
      incoming.on("error", () => {});
    };
    const session = connectHttp2(bed.harness.url);
    const stream = session.request({ ":method": "POST", ":path": bed.via("/a"), ...bearer(bed) });
    stream.write(Buffer.alloc(1000));
    let text = "";
    stream.on("data", (chunk) => (text += chunk));
    await once(stream, "close");
    expect({ text, code: stream.rstCode }).toEqual({ text: "early", code: 0 });
    bed.answer = answerWith(200, {}, "next");
    const next = session.request({ ":path": bed.via("/a"), ...bearer(bed) });
    let second = "";
    for await (const chunk of next) second += chunk;
    expect(second).toBe("next");
    session.close();
  });
});

describe("a caller that goes", () => {
  const closedAtProvider = () => {
    let begun: () => void = () => {};
    const hasBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const isClosed = new Promise<void>((resolve) => {
      bed.answer = (incoming, response) => {
        incoming.on("error", () => {}).resume();
        response.on("close", () => resolve());
        begun();
      };
    });
    return { hasBegun, isClosed };
  };

  it("in the middle of its body takes the provider's connection with it", async () => {
    const { hasBegun, isClosed } = closedAtProvider();
    const sent = begin({ "content-length": 1000 });
    sent.write("!!!");
    await hasBegun;
    sent.destroy();
    await isClosed;
  });

  it("by ending its side alone is gone as well, before and behind the end of its request", async () => {
    // No proof begins with this, so that redaction keeps none of it back.
    for (const body of ["!!!", "!!"]) {
      const { hasBegun, isClosed } = closedAtProvider();
      const { hostname, port } = new URL(bed.harness.url);
      const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
      socket.on("error", () => {});
      socket.resume();
      const fields = `Host: relay\r\nAuthorization: ${bearer(bed)["authorization"]}\r\nContent-Length: 3\r\n\r\n`;
      socket.write(`POST ${bed.via("/a")} HTTP/1.1\r\n${fields}${body}`);
      await hasBegun;
      socket.end();
      await isClosed;
      socket.destroy();
    }
  });
});

describe("a token that the provider calls expired", () => {
  /** A user whose token the provider no longer takes, and can be refreshed. */
  async function connectExpired(userId: string): Promise<string> {
    const { harness, application } = bed;
    const { access_token: accessToken, refresh_token: refreshToken = "" } = harness.sandbox.issueToken();
    await harness.putClient(application, "plain");
    await harness.connect(application, userId, { providerName: "plain", accessToken, refreshToken });
    return accessToken;
  }

  /** 401 for one token, and for all others what the body was. */
  function answerUnless(expired: string, isEarly = false) {
    bed.answer = (incoming, response) => {
      incoming.on("error", () => {});
      if (incoming.headers.authorization !== `Bearer ${expired}`) return answerDigest(incoming, response);
      const refuse = () => response.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' }).end("no");
      if (isEarly) incoming.once("data", refuse);
      else incoming.resume().on("end", refuse);
    };
  }

  it.each([
    ["with a length", (body: Buffer) => ({ "content-length": body.length })],
    ["in chunks", () => ({ "transfer-encoding": "chunked" })],
  ])("is refreshed, and a body of 64 KiB %s is sent once more", async (kind, fields) => {
    const user = `short ${kind}`;
    answerUnless(await connectExpired(user));
    const before = bed.received.length;
    const body = randomBytes(64 * 1024);
    const sent = begin({ ...fields(body), ...bearer(bed, { claims: { sub: user } }) });
    sent.end(body);
    expect(await answerTo(sent)).toMatchObject({ status: 200, text: digestOf(body) });
    expect(bed.received.length).toBe(before + 2);
  });

  it.each([
    ["with a length", (body: Buffer) => ({ "content-length": body.length })],
    ["in chunks", () => ({ "transfer-encoding": "chunked" })],
  ])("is refreshed, and a longer body %s is not sent again", async (kind, fields) => {
    const user = `long ${kind}`;
    answerUnless(await connectExpired(user));
    const before = bed.received.length;
    const body = randomBytes(64 * 1024 + 1);
    const upload = async () => {
      const sent = begin({ ...fields(body), ...bearer(bed, { claims: { sub: user } }) });
      sent.end(body);
      return answerTo(sent);
    };
    const { status, text, fields: answered } = await upload();
    expect({ status, text, error: answered["x-relay-error"] }).toEqual({ status: 401, text: "no", error: undefined });
    expect(bed.received.length).toBe(before + 1);
    expect(await upload()).toMatchObject({ status: 200, text: digestOf(body) });
  });

  it("is refreshed before the end of a body that is short", async () => {
    answerUnless(await connectExpired("early"), true);
    const sent = begin({ "content-length": 6, ...bearer(bed, { claims: { sub: "early" } }) });
    const before = bed.received.length;
    const answered = answerTo(sent);
    sent.write("abc");
    await expect.poll(() => bed.received.length).toBeGreaterThan(before + 1);
    sent.end("def");
    expect(await answered).toMatchObject({ status: 200, text: digestOf(Buffer.from("abcdef")) });
  });

  /** Nothing at 40,000 bytes looks like the beginning of a proof, so that redaction keeps none of them back. */
  function bytesFor(length: number): Buffer {
    return randomBytes(length).fill(0xff, 39_900, 40_000);
  }

  /** The head of a 401 after some bytes, its end behind the body; gives the digests of the requests that came whole. */
  function refuseAfter(expired: string, bytes: number): readonly string[] {
    const whole: string[] = [];
    bed.answer = (incoming, response) => {
      incoming.on("error", () => {});
      const chunks: Buffer[] = [];
      const isRefused = incoming.headers.authorization === `Bearer ${expired}`;
      incoming.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        if (!isRefused || response.headersSent || Buffer.concat(chunks).length < bytes) return;
        response.writeHead(401, { "content-type": "text/plain" }).flushHeaders();
      });
      incoming.on("end", () => {
        whole.push(digestOf(Buffer.concat(chunks)));
        response.end(whole.at(-1));
      });
    };
    return whole;
  }

  /** By then the relay has read what was written to its other connections. */
  async function passOthers(): Promise<void> {
    for (let count = 0; count < 3; count++) await send(bed, bed.via("/other"), { fields: bearer(bed) });
  }

  it.each([
    ["the end", 80_000],
    ["the middle", 70_000],
  ])("never costs a body in chunks %s that comes during the refresh", async (part, bytesDuring) => {
    const user = `during ${part}`;
    const whole = refuseAfter(await connectExpired(user), 40_000);
    const body = bytesFor(80_000);
    const sent = begin({ "transfer-encoding": "chunked", ...bearer(bed, { claims: { sub: user } }) });
    const answered = answerTo(sent);
    duringRefresh = async () => {
      await new Promise((resolve) => sent.write(body.subarray(40_000, bytesDuring), resolve));
      if (bytesDuring === body.length) sent.end();
      await passOthers();
    };
    const before = bed.received.length;
    sent.write(body.subarray(0, 40_000));
    await expect.poll(() => bed.received.slice(before).filter(({ target }) => target === "/a").length).toBe(2);
    if (bytesDuring < body.length) sent.end(body.subarray(bytesDuring));
    const { status, text } = await answered;
    expect({ status, text }).toEqual({ status: 200, text: digestOf(body) });
    expect(whole.filter((digest) => !digest.startsWith("0 "))).toEqual([digestOf(body)]);
  });

  it("and cannot be refreshed is answered with the 401, beside which the body goes on", async () => {
    const whole = refuseAfter(bed.token, 40_000);
    const body = bytesFor(300_000);
    const sent = begin({ "transfer-encoding": "chunked" });
    const responding = once(sent, "response") as Promise<[IncomingMessage]>;
    sent.write(body.subarray(0, 40_000));
    const [response] = await responding;
    sent.end(body.subarray(40_000));
    expect(await readAnswer(response)).toMatchObject({ status: 401, text: digestOf(body) });
    expect(whole).toEqual([digestOf(body)]);
  });
});
