import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Caller, createCallers, postRest, type ScenarioCall } from "../../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";

const TYPED = ["Connect JSON", "Connect binary", "gRPC", "gRPC-Web"];

let harness: Harness;
let application: TestApplication;
let callers: ReadonlyMap<string, Caller>;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
  await harness.connect(application, "ada");
  callers = new Map(createCallers(harness.url));
});

afterAll(() => harness.close());

const deep = (levels: number) => `${'{"a":'.repeat(levels)}[]${"}".repeat(levels)}`;

/** What the provider answers as JSON, and the members of a row that a typed caller gets for it. */
const VALUES: ReadonlyArray<readonly [name: string, text: string, row: Record<string, unknown>]> = [
  ["null", "null", { data: null }],
  ["a scalar", "true", { data: true }],
  ["an empty string", '""', { data: "" }],
  ["white space around the value", ' \r\n\t{"a":1}\n', { data: { a: 1 } }],
  ["minus zero", "-0", { data: 0 }],
  ["a number below the smallest double", "[1e-400]", { data: [0], dataRounded: true }],
  ["a number of 30 digits", "123456789012345678901234567890", { data: 1.2345678901234568e29, dataRounded: true }],
  ["the largest double", "1.7976931348623157e308", { data: Number.MAX_VALUE }],
  ["a key in two objects", '[{"a":{"a":1}},{"a":"a:a"}]', { data: [{ a: { a: 1 } }, { a: "a:a" }] }],
  ["an escaped NUL", '"a\\u0000b"', { data: "a\0b" }],
  ["a pair of surrogates", '"\\ud83d\\ude00"', { data: "😀" }],
  ["the names of members of every object", '{"constructor":1,"toString":2}', { data: { constructor: 1, toString: 2 } }],
  ["30 levels", deep(29), { data: JSON.parse(deep(29)) }],
];

/** JSON that a Value cannot hold for every client: its text comes instead. */
const TEXTS: ReadonlyArray<readonly [name: string, text: string]> = [
  ["a number beyond a double", '{"a":[1,1e400]}'],
  ["minus a number beyond a double", "-1e999"],
  ["a member named __proto__", '{"__proto__":{"admin":true},"b":1}'],
  ["a member named __proto__ that hides", '{"a":{"\\u005f_proto__":1}}'],
  ["a key twice", '{"a":1,"a":2}'],
  ["a key twice, escaped and deep within", '[{"b":{"a":1,"\\u0061":1}}]'],
  ["the first half of a pair of surrogates", '{"a":"b\\ud800"}'],
  ["the second half of a pair of surrogates in a name", '{"a\\uDC00":1}'],
  ["two halves in the wrong order", '["\\udc00\\ud800"]'],
  ["31 levels", deep(30)],
  ["100 levels", deep(100)],
  ["100,000 levels", deep(100_000)],
];

/** What says that it is JSON and is not: it comes as a string everywhere. */
const BROKEN: ReadonlyArray<readonly [name: string, bytes: string | Buffer, data: unknown]> = [
  ["two values", '{"a":1}{"b":2}', '{"a":1}{"b":2}'],
  ["NaN", '{"a":NaN}', '{"a":NaN}'],
  ["a comma too many", "[1,]", "[1,]"],
  ["a raw NUL", '"a\0b"', '"a\0b"'],
  ["brackets without end", "[".repeat(100_000), "[".repeat(100_000)],
  ["a byte order mark, which is no part of it", "\ufeff[1]", [1]],
  ["latin1 without saying so", Buffer.from('["\xe9"]', "latin1"), ["é"]],
];

function call(body: string | Buffer): ScenarioCall {
  return {
    providerName: "sandbox",
    userId: "ada",
    publicKey: application.publicKey,
    call: {
      url: `${harness.sandbox.origin}/raw-echo`,
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: Buffer.from(body as string).toString("base64"),
    },
  };
}

async function rowOver(protocol: string, body: string | Buffer): Promise<Record<string, unknown>> {
  const { callId, headers, ...row } = await (callers.get(protocol) as Caller)(call(body));
  expect(callId).toMatch(/^[0-9a-f-]{36}$/);
  expect(headers).toBeDefined();
  return row;
}

const success = { pincStatus: "success", statusCode: 200, contentType: "application/json" };

describe.each(TYPED)("a provider's answer over %s", (protocol) => {
  it.each(TEXTS)("is JSON text when it has %s", async (_name, text) => {
    expect(await rowOver(protocol, text)).toEqual({ ...success, data: text, dataEncoding: "json" });
    expect(Reflect.get({}, "admin")).toBeUndefined();
  });

  it.each(VALUES)("is a value when it has %s", async (_name, text, row) => {
    expect(await rowOver(protocol, text)).toEqual({ ...success, ...row });
  });

  it.each(BROKEN)("is what can be read when it is not quite JSON: %s", async (_name, bytes, data) => {
    expect(await rowOver(protocol, bytes)).toEqual({ ...success, data });
  });
});

describe("a provider's answer over the JSON route", () => {
  const texts = [...TEXTS, ...VALUES].map(([name, text]) => [name, text] as const);

  it.each(texts)("stands in the envelope as it was written when it has %s", async (_name, text) => {
    const answer = await postRest(harness.url, call(text));
    expect(answer.text).toContain(`"contentType":"application/json","data":${text},"headers":{`);
    expect(answer.text).not.toContain("dataEncoding");
  });

  it.each(BROKEN)("is what can be read when it is not quite JSON: %s", async (_name, bytes, data) => {
    expect(await rowOver("REST", bytes)).toEqual({ ...success, data });
  });
});
