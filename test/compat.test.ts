import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "./support/harness.js";

const USER = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d";
const ORIGIN = "https://app.example.com";
const PNG = Buffer.from("89504e470d0a1a0a", "hex");

let harness: Harness;
let application: TestApplication;
let at: string;

beforeAll(async () => {
  harness = await startHarness({
    providers: [],
  });
  application = await harness.createApplication({ allowedOrigins: [ORIGIN] });
  await harness.connect(application, USER);
  await harness.connect(application, "a+b@example.com");
  at = harness.sandbox.origin;
});

afterAll(() => harness.close());

/** Posts text, or nothing, to the route with a query as the client writes it. */
async function post(
  query: string,
  body: string,
  headers: Record<string, string> = { "content-type": "application/json" },
) {
  const filled = query
    .replaceAll("PUB", application.publicKey)
    .replaceAll("PRIV", application.privateKey)
    .replaceAll("U!", USER);
  const answer = await request(`${harness.url}/oauth/method/sandbox/call?${filled}`, { method: "POST", headers, body });
  const text = await answer.body.text();
  return { statusCode: answer.statusCode, headers: answer.headers, text, json: JSON.parse(text) };
}

const both = "user_id=U!&public_key=PUB";
const send = (call: object, query = both) => post(query, JSON.stringify(call));
/** What the sandbox received last. */
const received = () => {
  const last = harness.sandbox.requests.at(-1);
  if (last === undefined) throw new Error("the sandbox received nothing");
  return last;
};
const header = (name: string) => {
  const raw = received().rawHeaders;
  const values: string[] = [];
  for (let index = 0; index < raw.length; index += 2)
    if (raw[index]?.toLowerCase() === name) values.push(raw[index + 1] ?? "");
  return values.join(" & ");
};

describe("requests of clients of the hosted service", () => {
  it("C1: old parameter names, JSON text as a form", async () => {
    const body = JSON.stringify({
      url: `${at}/chat.postMessage`,
      method: "POST",
      payload: { channel: "#general", text: "hi" },
    });
    const answer = await post("userId=U!&pinc_client_id=PUB", body, {
      "content-type": "application/x-www-form-urlencoded; charset=UTF-8",
    });
    expect(answer.json.rows[0]).toMatchObject({ pincStatus: "success", statusCode: 200 });
    expect(received()).toMatchObject({ method: "POST" });
    expect(received().body.toString()).toBe('{"channel":"#general","text":"hi"}');
    expect(header("content-type")).toBe("application/json");
  });

  it("C2: a browser's text/plain with a queryString", async () => {
    const body = JSON.stringify({
      url: `${at}/youtube/v3/channels`,
      queryString: { part: "id", mine: "true" },
      method: "GET",
    });
    const answer = await post(both, body, { "content-type": "text/plain;charset=UTF-8", origin: ORIGIN });
    expect(answer.json.rows[0].pincStatus).toBe("success");
    expect(answer.headers["access-control-allow-origin"]).toBe(ORIGIN);
    expect(answer.headers["access-control-allow-credentials"]).toBe("true");
    expect(received().target).toBe("/youtube/v3/channels?part=id&mine=true");
  });

  it("C3: whether a user is connected", async () => {
    const query = "user_id=U!&public_key=PUB&private_key=PRIV";
    const call = { url: `${at}/2/users/me`, method: "GET" };
    expect((await send(call, query)).json.rows[0].pincStatus).toBe("success");
    const never = await send(call, query.replace("U!", "never"));
    expect(never.statusCode).toBe(200);
    expect(never.json.rows[0]).toMatchObject({ pincStatus: "error", errorType: "INVALID_OAUTHID", statusCode: 401 });
  });

  it("C4: a boolean in the queryString", async () => {
    await send({ url: `${at}/echo`, method: "GET", queryString: { part: "snippet", forMine: true } });
    expect(received().target).toBe("/echo?part=snippet&forMine=true");
  });

  it("C5: a header of the API", async () => {
    const { json } = await send({ url: `${at}/me`, method: "GET", headers: { "X-Restli-Protocol-Version": "2.0.0" } });
    expect(header("x-restli-protocol-version")).toBe("2.0.0");
    expect(json.rows[0].data.sub).toEqual(expect.any(String));
  });

  it.each([{ "x-payload-type": "file" }, {}])("C6: a file as raw bytes, headers %j", async (headers) => {
    const payload = { files: [{ content: PNG.toString("base64"), type: "image/png" }] };
    const { json } = await send({ url: `${at}/upload/x`, method: "PUT", headers, payload });
    expect(json.rows[0]).toMatchObject({ pincStatus: "success", statusCode: 201, data: {} });
    expect(received().body.equals(PNG)).toBe(true);
    expect(header("content-type")).toBe("image/png");
    expect(header("x-payload-type")).toBe("");
  });

  it("C7: FORM, a page token of the caller's own, and the unwrapped answer", async () => {
    const { text } = await send({
      url: `${at}/raw-echo/PAGE/feed`,
      method: "FORM",
      payload: { message: "t", access_token: "PAGE_TOKEN" },
      headers: { "x-pinc-response-data-at": "rows.0.data" },
    });
    expect(received()).toMatchObject({ method: "POST" });
    expect(received().body.toString()).toBe("message=t&access_token=PAGE_TOKEN");
    expect(header("content-type")).toBe("application/x-www-form-urlencoded");
    expect(header("x-pinc-response-data-at")).toBe("");
    expect(text).toBe('"message=t&access_token=PAGE_TOKEN"');
  });

  it("C8: arrays of objects in the queryString", async () => {
    const media = [{ media_fbid: "1" }, { media_fbid: "2" }];
    await send({ url: `${at}/echo`, method: "POST", queryString: { message: "t", attached_media: media } });
    expect(new URLSearchParams(received().target.split("?")[1]).get("attached_media")).toBe(JSON.stringify(media));
  });

  it("C9: multipart/related in the order written", async () => {
    await send({
      url: `${at}/raw-echo?uploadType=multipart`,
      method: "MULTIPART-FORM",
      payload: {
        contentPart1: { content: { snippet: {} }, contentType: "application/json" },
        contentPart0: { content: PNG.toString("base64"), contentType: "video/mp4" },
      },
    });
    const boundary = /^multipart\/related; boundary="?([^";]+)"?/.exec(header("content-type"))?.[1];
    expect(boundary).toEqual(expect.any(String));
    const parts = received().body.toString("latin1").split(`--${boundary}`);
    expect(parts).toHaveLength(4);
    expect(parts[1]).toMatch(/content-type: application\/json/i);
    expect(parts[1]).toContain('\r\n\r\n{"snippet":{}}\r\n');
    expect(parts[2]).toMatch(/content-type: video\/mp4/i);
    expect(parts[2]).toContain(`\r\n\r\n${PNG.toString("latin1")}\r\n`);
    expect(parts[3]).toMatch(/^--/);
  });

  it("C10: empty payload and headers, and JSON also on failure", async () => {
    const query = "user_id=U!&public_key=PUB&private_key=PRIV&provider=sandbox";
    expect(
      (await send({ url: `${at}/me`, method: "GET", payload: {}, headers: {} }, query)).json.rows[0].pincStatus,
    ).toBe("success");
    expect((await post(query, "not json")).json.rows[0]).toMatchObject({ errorType: "CALL_FORMAT_ERROR" });
  });

  it("C11: the call in the query, the body empty, the answer unwrapped", async () => {
    const query = `${both}&private_key=PRIV&body.url=${encodeURIComponent(`${at}/me`)}&body.method=GET&body.headers.x-pinc-response-data-at=rows.0.data`;
    expect((await post(query, "", {})).json).toMatchObject({ sub: expect.any(String) });
  });

  it("C12: multipart/form-data with fields and a file", async () => {
    await send({
      url: `${at}/raw-echo`,
      method: "MULTIFORM-POST",
      payload: { caption: "c", photo: { content: PNG.toString("base64"), type: "image/png", name: "p.png" } },
    });
    const form = await new Response(new Uint8Array(received().body), {
      headers: { "content-type": header("content-type") },
    }).formData();
    expect(form.get("caption")).toBe("c");
    const photo = form.get("photo") as File;
    expect(photo).toMatchObject({ name: "p.png", type: "image/png" });
    expect(Buffer.from(await photo.arrayBuffer()).equals(PNG)).toBe(true);
  });

  it("C13: a user id that is an e-mail address matches exactly; a raw + is a space", async () => {
    const call = { url: `${at}/me`, method: "GET" };
    expect((await send(call, "user_id=a%2Bb%40example.com&public_key=PUB")).json.rows[0].pincStatus).toBe("success");
    const raw = await send(call, "user_id=a+b@example.com&public_key=PUB");
    expect(raw.json.rows[0]).toMatchObject({
      errorType: "INVALID_OAUTHID",
      inernalError: expect.stringContaining("+"),
    });
  });

  it("C14: keys with dots, deep objects, order and number text arrive as they were written", async () => {
    const payload = '{ "com.example.ugc.ShareContent": {"b":[1.0,{"a":9007199254740993}]}, "2":0, "1":0 }';
    await post(both, `{"url":"${at}/echo","method":"POST","payload":${payload}}`);
    expect(received().body.toString()).toBe(payload);
  });

  it("C15: Location comes back with the case of its name", async () => {
    const { json } = await send({ url: `${at}/upload/resumable`, method: "POST", payload: { a: 1 } });
    expect(json.rows[0].headers.Location).toContain("/upload/");
  });

  it("sends the stored credential once, whatever the caller wrote", async () => {
    await send({
      url: `${at}/echo`,
      method: "GET",
      headers: { AUTHORIZATION: "Bearer ATT", Cookie: "a=b", Host: "evil.test" },
    });
    expect(header("authorization")).toMatch(/^Bearer CANARY_\S+$/);
    expect(header("cookie")).toBe("");
    expect(header("host")).toBe(new URL(at).host);
  });

  it.each([
    ["rows.0", (json: unknown) => expect(json).toMatchObject({ pincStatus: "success", statusCode: 200 })],
    ["rows.0.data.missing", (json: unknown) => expect(json).toHaveProperty("rows")],
  ])("answers with the part at %s, or the whole", async (path, check) => {
    check((await send({ url: `${at}/me`, method: "GET", headers: { "X-Pinc-Response-Data-At": path } })).json);
  });
});
