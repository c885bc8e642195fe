import { describe, expect, it } from "vitest";
import { CallCapture, createCapturing, MAX_CAPTURED_CALLS } from "../../src/records/call-capture.js";
import { findCapture, sealCapture } from "../../src/records/capture-store.js";
import { Secret } from "../../src/sealing/seal.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";

const TOKEN = `CANARY_${"t".repeat(60)}`;
const NOTHING = { response: undefined, message: undefined };

/** What is captured of a request that was sent with the token. */
function sentWith(body: string, { field = "x-custom", headers = [] as Array<readonly [string, string]> } = {}) {
  const request = { method: "POST", url: "https://api.example/x", headers, body: Buffer.from(body) };
  const capture = new CallCapture(1, request);
  capture.noteSent(request, [new Secret(TOKEN)], [field]);
  return capture.content(NOTHING).request;
}

describe("CallCapture", () => {
  it("masks the field that holds the token, whatever it is called, and the token wherever else it stands", () => {
    const { headers, body } = sentWith(`a ${TOKEN} b ${encodeURIComponent(TOKEN)}`, {
      headers: [
        ["X-Custom", "CANARY other"],
        ["x-note", `is ${TOKEN}`],
      ],
    });
    expect(headers).toEqual([
      ["X-Custom", "[masked]"],
      ["x-note", "is [redacted]"],
    ]);
    expect(body?.text).toBe("a [redacted] b [redacted]");
  });

  it("holds no beginning of a token where it looks no further", () => {
    // Many tokens make the text shorter, so that what is looked at fits.
    for (const shift of [0, 10, 20, 30, 40, 50]) {
      const { body } = sentWith("x".repeat(shift) + `${TOKEN}.`.repeat(400));
      expect(body?.isCut).toBe(true);
      expect(body?.text).not.toContain("CANARY_");
    }
  });

  it("searches for no more credentials of a caller than a call honestly has, and for its token always", () => {
    const secrets = Array.from({ length: 1000 }, (_, at) => `credential-${at}-of-the-caller`);
    const headers = secrets.map((secret, at) => [`x-api-key-${at}`, secret] as const);
    const endless = ["x-api-key-endless", "e".repeat(20_000)] as const;
    const { headers: shown, body } = sentWith(`${secrets[0]} ${secrets[999]} ${TOKEN} ${endless[1].slice(0, 9)}`, {
      headers: [endless, ...headers],
    });
    expect(new Set(shown.map(([, value]) => value))).toEqual(new Set(["[masked]"]));
    expect(body?.text).toBe(`[redacted] ${secrets[999]} [redacted] eeeeeeeee`);
  });

  it("keeps no bytes that are no text", () => {
    const request = { method: "POST", url: "https://a.example", headers: [], body: Buffer.from([0xff, 0xfe, 0, 1]) };
    expect(new CallCapture(1, request).content(NOTHING).request.body).toEqual({ bytes: 4, isCut: true });
  });

  it("shows the last request that was sent, without the secrets of all", () => {
    const [one, two] = [`${TOKEN}1`, `${TOKEN}2`];
    const requestOf = (url: string) => ({ method: "GET", url, headers: [], body: undefined });
    const capture = new CallCapture(1, requestOf("https://a.example"));
    capture.noteSent(requestOf(`https://a.example/${one}`), [new Secret(one)], []);
    capture.noteSent(requestOf(`https://b.example/${one}/${two}`), [new Secret(two)], []);
    expect(capture.content(NOTHING).request.url).toBe("https://b.example/[redacted]/[redacted]");
  });
});

describe("a sealed capture", () => {
  it("opens for its own call alone", async () => {
    const sealer = sealerForTest();
    const key = { callId: "a", applicationId: "app" };
    const content = new CallCapture(1, {
      method: "GET",
      url: "https://a.example",
      headers: [],
      body: undefined,
    }).content(NOTHING);
    const stored = { ...key, captureUntil: 1, createdAt: 1, content: sealCapture(sealer, key, content) };
    const found = (other: object) => findCapture({ find: async () => ({ ...stored, ...other }) }, sealer, "a");
    expect(await found({})).toMatchObject({ content: { request: { method: "GET" } } });
    for (const other of [{ callId: "b" }, { applicationId: "other" }]) {
      expect(await found(other)).toEqual({ problem: expect.stringContaining("cannot be opened") });
    }
  });
});

describe("createCapturing()", () => {
  it("captures so many calls of each capture, and none after its end", () => {
    let now = 1000;
    const capturing = createCapturing(() => now);
    const begin = (captureUntil: number) =>
      capturing.begin({ id: "a", captureUntil }, () => ({ method: "GET", url: "", headers: [], body: undefined }));
    for (let calls = 0; calls < MAX_CAPTURED_CALLS; calls += 1) expect(begin(2000)).toBeDefined();
    expect(begin(2000)).toBeUndefined();
    expect(begin(3000)?.captureUntil).toBe(3000);
    now = 3000;
    expect(begin(3000)).toBeUndefined();
  });
});
