import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { createStreamCallers } from "../support/stream-callers.js";

const TOKEN = "CANARY_0123456789abcdefghijklmnopqrstuvwxyz";

let harness: Harness;
let provider: RawProvider;
let application: TestApplication;
let callers: ReturnType<typeof createCallers>;
let streamCallers: ReturnType<typeof createStreamCallers>;

/** Echoes the token, or the part of it that is asked for, under the type that the path names. */
beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    const [, first, last] = /^(?:request-|x-ms-)?range: bytes=(\d+)-(\d*)/im.exec(head) ?? [];
    const type = decodeURIComponent(/\?type=([^&\s]*)/.exec(head)?.[1] ?? "");
    const body = `{"authorization":"Bearer ${TOKEN}"}`;
    const part = first === undefined ? body : body.slice(Number(first), last ? Number(last) + 1 : undefined);
    socket.write(
      [
        first === undefined && !head.includes("&list") ? "HTTP/1.1 200 OK" : "HTTP/1.1 206 Partial Content",
        ...(head.includes("&list") ? ["Content-Range: id a..c"] : []),
        ...(first === undefined
          ? []
          : [`Content-Range: bytes ${first}-${Number(first) + part.length - 1}/${body.length}`]),
        ...(type === "" ? [] : [`Content-Type: ${type}`]),
        `Content-Length: ${part.length}`,
        "",
        head.startsWith("HEAD") ? "" : part,
      ].join("\r\n"),
    );
  });
  harness = await startHarness({ providers: [{ name: "raw", apiOrigins: [provider.origin] }] });
  callers = createCallers(harness.url);
  streamCallers = createStreamCallers(harness.url);
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw", accessToken: TOKEN });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

function callOf(type: string, range?: string, name = "rAnge") {
  const url = `${provider.origin}/?type=${encodeURIComponent(type).replace("%26", "&")}`;
  const headers = range === undefined ? {} : { [name]: range };
  return { providerName: "raw", userId: "u", publicKey: application.publicKey, call: { url, method: "GET", headers } };
}

describe("a caller's Range", () => {
  it.each([
    "application/json",
    "text/plain",
    "application/problem+json",
    "application/xml",
    "",
    "multipart/byteranges; boundary=x",
  ])("gets no part of a text of type %j, on any surface", async (type) => {
    for (const range of ["bytes=0-40", "bytes=41-", "bytes=30-30"]) {
      for (const [protocol, call] of callers) {
        const row = await call(callOf(type, range));
        expect(row, protocol).toMatchObject({ statusCode: 400, errorType: "CALL_FORMAT_ERROR" });
        expect(row["inernalError"], protocol).toContain("headers.Range");
        expect(row["data"], protocol).toBeUndefined();
      }
      for (const [protocol, call] of streamCallers) {
        expect(JSON.stringify(await call(callOf(type, range))), protocol).toContain("CALL_FORMAT_ERROR");
      }
    }
  });

  it.each(["Request-Range", "x-ms-range"])("gets none under the name %s", async (name) => {
    for (const [protocol, call] of callers) {
      const row = await call(callOf("text/plain", "bytes=20-40", name));
      expect(row, protocol).toMatchObject({ statusCode: 400, errorType: "CALL_FORMAT_ERROR" });
    }
    for (const [protocol, call] of streamCallers) {
      expect(JSON.stringify(await call(callOf("text/plain", "bytes=20-40", name))), protocol).toContain(
        "CALL_FORMAT_ERROR",
      );
    }
    const [[, rest]] = callers as [(typeof callers)[0]];
    expect(await rest(callOf("image/png", "bytes=0-3", name))).toMatchObject({ statusCode: 206 });
  });

  it("gets a part of what is no text, and all of a text as any call does", async () => {
    const [[, rest]] = callers as [(typeof callers)[0]];
    const part = await rest(callOf("image/png", "bytes=0-3"));
    expect(part).toMatchObject({ statusCode: 206, data: Buffer.from('{"au').toString("base64") });
    expect((await rest(callOf("application/json")))["data"]).toEqual({ authorization: "Bearer [redacted]" });
    expect(await rest(callOf("application/json&list"))).toMatchObject({
      statusCode: 206,
      data: { authorization: "Bearer [redacted]" },
    });
    // Of other units a provider makes what it likes: lists, mostly.
    expect((await rest(callOf("application/json", "items=0-24")))["statusCode"]).toBe(200);
  });

  it("gets an answer to HEAD, which has no part of anything", async () => {
    for (const [protocol, call] of [...callers, ...streamCallers]) {
      const asked = callOf("application/json", "bytes=0-3");
      const answer = await call({ ...asked, call: { ...asked.call, method: "HEAD" } });
      expect("head" in answer ? answer.head : answer, protocol).toMatchObject({ statusCode: 206 });
    }
  });

  it("leaves the provider's socket in order when its answer is refused", async () => {
    const [[, rest]] = callers as [(typeof callers)[0]];
    const [, raw] = streamCallers[0] as (typeof streamCallers)[0];
    for (let turn = 0; turn < 5; turn++) {
      await raw(callOf("text/plain", "bytes=0-20"));
      expect((await rest(callOf("application/json")))["data"]).toEqual({ authorization: "Bearer [redacted]" });
    }
  });
});
