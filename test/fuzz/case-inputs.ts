import fc from "fast-check";

/** A call as the pieces of its JSON text. */
export interface CallInput {
  readonly method: string;
  /** Behind the origin of the provider. */
  readonly tail: string;
  /** In the order written, names as they are and values as JSON text; a name may come twice. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** JSON text; undefined to leave the member out. */
  readonly payload: string | undefined;
  readonly queryString: string | undefined;
}

/** The text of a call. */
export function textFromCall(origin: string, { method, tail, headers, payload, queryString }: CallInput): string {
  const members = [`"url":${JSON.stringify(origin + tail)}`, `"method":${JSON.stringify(method)}`];
  if (headers.length > 0)
    members.push(`"headers":{${headers.map(([name, value]) => `${JSON.stringify(name)}:${value}`)}}`);
  if (payload !== undefined) members.push(`"payload":${payload}`);
  if (queryString !== undefined) members.push(`"queryString":${queryString}`);
  return `{${members.join(",")}}`;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** Of the IANA HTTP Method Registry and beside it. */
const FURTHER_METHODS = ["PROPFIND", "MKCALENDAR", "REPORT", "SEARCH", "QUERY", "VERSION-CONTROL", "PURGE"];
const PSEUDO_METHODS = ["FORM", "MULTIFORM-POST", "MULTIFORM-PUT", "MULTIFORM-PATCH", "MULTIPART-FORM", "GETFILE"];
/** Threats H23 and H24. */
const WRONG_METHODS = [
  ..."TRACE CONNECT PRI SOURCE PROPFINDS CONSTRUCTOR __proto__ toString".split(" "),
  " GET",
  "GET ",
  "GET\r\n",
  "GET / HTTP/1.1\r\nX: y",
  "",
  "\uff27\uff25\uff34",
  "PO\u017fT",
  "GET\0",
  "G".repeat(1_000),
];

/** Names that a caller may not set, or that mean something on the way (threats H01 to H22). */
const HOSTILE_NAMES = [
  ..."authorization proxy-authorization host content-length transfer-encoding connection keep-alive te trailer".split(
    " ",
  ),
  ..."upgrade http2-settings expect max-forwards cookie cookie2 set-cookie forwarded via x-forwarded-for".split(" "),
  ..."x_forwarded_for content_length x-forwarded-host x-forwarded-proto x-real-ip x-client-ip x-original-url x-rewrite-url x-envoy-a".split(
    " ",
  ),
  ..."cf-connecting-ip x-http-method-override x-method-override sec-fetch-site origin referer".split(" "),
  ..."accept-encoding x-partner-key proxy-connection true-client-ip x-payload-type".split(" "),
];
const ORDINARY_NAMES = "x-a x-b x_c accept content-type user-agent if-match range accept-language x-request-id".split(
  " ",
);
/** Names that are none. */
const WRONG_NAMES = [
  ..."__proto__ _a toString".split(" "),
  ...["x a", "x:a", "", "x\r\nEvil", "x\0", "Authorization ", " authorization", "\u00e4", "\ud800", "a".repeat(65)],
];
const HOSTILE_VALUES = [
  ..."chunked identity xchunked close upgrade trailers 100-continue websocket 0 1 99 -1 0x7 file".split(" "),
  ...["7, 7", "gzip, br", "Bearer ATTACKER", "Basic eDp5", "evil.test", "authorization, host", " padded ", "\t"],
  ...["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"],
  ...[
    "1\r\nAuthorization: Bearer EVIL",
    "1\nb",
    "1\rb",
    "a\0b",
    "a\u007fb",
    "\u560a\u560dX-Evil: 1",
    "\u{1f600}",
    "\u00e9",
  ],
  ...["\r\n\r\nGET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n", "{{access_token}}", "\ud800", "a".repeat(9_000)],
];
const OTHER_VALUES = [
  "null",
  "1",
  "-0",
  "1e400",
  "true",
  "[]",
  '["a"]',
  '{"toString":1}',
  '"\\u000d\\u000a"',
  '"\\ud800"',
];

const KEYS = [
  ..."__proto__ constructor prototype toJSON toString files content contentType type name contentPart0 body".split(" "),
  ..."access_token client_secret 0 1 a[] a.b".split(" "),
  ...["", "a b", "\u00e9", '"', 'x"; filename="y', "x\r\nContent-Type: evil/x\r\n\r\n", "&a=b", "\ud800"],
];
/** Values that only text can hold, or that readers differ on (threats 2F). */
const ODD_JSON = [
  ...["9007199254740993", "1e400", "-0", "1.0", "0.1e-400", "123456789012345678901234567890", "\\ud800"].map((value) =>
    value.startsWith("\\") ? `{"n":"${value}"}` : `{"n":${value}}`,
  ),
  ...['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"__proto__":{"admin":true}}', '{"constructor":{"prototype":{}}}'],
  ...[
    '{ "b" : [ 1 , 2 ] , "a" : null }',
    '{"a":"\\u0000"}',
    '{"2":1,"1":2}',
    "{}",
    "null",
    "[]",
    '"text"',
    "1",
    "true",
  ],
  ...['{"files":[{"content":"AP8=","type":"image/png","name":"p.png"}]}', '{"files":[{"content":"!"}]}'],
  ...['{"contentPart0":{"content":{"a":1}},"contentPart1":{"content":"AP8=","contentType":"image/png"}}'],
  ...['{"a":{"content":"AP8=","type":"x/y\\r\\nEvil: 1","name":"\\r\\n\\"evil"}}'],
  `{"deep":${"[".repeat(62)}${"]".repeat(62)}}`,
  `{"deep":${"[".repeat(70)}${"]".repeat(70)}}`,
];

const anyMethod = fc.oneof(
  { weight: 10, arbitrary: fc.constantFrom(...METHODS) },
  { weight: 5, arbitrary: fc.mixedCase(fc.constantFrom(...METHODS, ...PSEUDO_METHODS, ...FURTHER_METHODS)) },
  { weight: 1, arbitrary: fc.constantFrom(...WRONG_METHODS) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
);

const anyName = fc.oneof(
  { weight: 6, arbitrary: fc.stringMatching(/^[xX]-[A-Za-z0-9-]{1,12}$/) },
  { weight: 4, arbitrary: fc.mixedCase(fc.constantFrom(...ORDINARY_NAMES)) },
  { weight: 5, arbitrary: fc.mixedCase(fc.constantFrom(...HOSTILE_NAMES)) },
  { weight: 1, arbitrary: fc.oneof(fc.constantFrom(...WRONG_NAMES), fc.string({ unit: "binary", maxLength: 6 })) },
);

const anyValue = fc.oneof(
  { weight: 12, arbitrary: fc.string({ unit: "grapheme-ascii", maxLength: 20 }).map((text) => JSON.stringify(text)) },
  { weight: 4, arbitrary: fc.constantFrom(...HOSTILE_VALUES).map((text) => JSON.stringify(text)) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 8 }).map((text) => JSON.stringify(text)) },
  { weight: 1, arbitrary: fc.constantFrom(...OTHER_VALUES) },
);

const anyKey = fc.oneof(
  fc.stringMatching(/^[a-z_]{1,8}$/),
  fc.constantFrom(...KEYS),
  fc.string({ unit: "binary", maxLength: 6 }),
);

const { value: anyJson } = fc.letrec<{ value: unknown; object: unknown }>((tie) => ({
  object: fc.dictionary(anyKey, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 12 }),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
      fc.constantFrom("=", "&", "%", "+", "{{access_token}}", "\r\n", "\u2028"),
    ),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
  ),
}));

const anyObject = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  { weight: 8, arbitrary: fc.dictionary(anyKey, anyJson, { maxKeys: 5 }).map((object) => JSON.stringify(object)) },
  { weight: 2, arbitrary: fc.constantFrom(...ODD_JSON) },
);

const anyTail = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("/x", "/x?a=1", "/a%2Fb//c?q=~'()*+%20&&x=&x=", "", "?", "/x?") },
  { weight: 1, arbitrary: fc.webPath().map((path) => `/${path}`) },
  { weight: 1, arbitrary: fc.webQueryParameters().map((query) => `/x?${query}`) },
);

/** Calls of every kind, most of them good or nearly so. */
export const generatedCalls: fc.Arbitrary<CallInput> = fc.record({
  method: anyMethod,
  tail: anyTail,
  headers: fc.array(fc.tuple(anyName, anyValue), { maxLength: 5 }),
  payload: anyObject,
  queryString: anyObject,
});

/** Every hostile value of the tables once, in a call that is otherwise good. */
export function listCalls(): CallInput[] {
  const good: CallInput = { method: "POST", tail: "/x", headers: [], payload: '{"a":1}', queryString: undefined };
  const text = (value: string) => JSON.stringify(value);
  const names = [...HOSTILE_NAMES, ...WRONG_NAMES, ...HOSTILE_NAMES.map((name) => name.toUpperCase())];
  return [
    ...[...METHODS, ...FURTHER_METHODS, ...PSEUDO_METHODS, ...WRONG_METHODS].map((method) => ({ ...good, method })),
    ...names.flatMap((name) =>
      ["1", "chunked", "Bearer ATTACKER"].map((value) => ({ ...good, headers: [[name, text(value)] as const] })),
    ),
    ...[...HOSTILE_VALUES.map(text), ...OTHER_VALUES].map((value) => ({ ...good, headers: [["x-a", value] as const] })),
    { ...good, headers: ["authorization", "AUTHORIZATION", "Authorization"].map((name) => [name, text("Bearer x")]) },
    { ...good, headers: ["content-length", "Content-Length"].map((name) => [name, text("7")]) },
    { ...good, headers: ["x-a", "X-A"].map((name) => [name, text("7")]) },
    { ...good, headers: ["x-a", "x-a"].map((name) => [name, text("7")]) },
    ...[64, 65, 101].map((count) => ({ ...good, headers: Array.from({ length: count }, (_, at) => header(at)) })),
    { ...good, headers: [["x-a", text("a".repeat(8_188))]] },
    { ...good, headers: [["x-a", text("a".repeat(8_190))]] },
    ...METHODS.flatMap((method) => ODD_JSON.map((payload) => ({ ...good, method, payload }))),
    ...PSEUDO_METHODS.flatMap((method) => ODD_JSON.map((payload) => ({ ...good, method, payload }))),
    ...ODD_JSON.map((queryString) => ({ ...good, method: "GET", payload: undefined, queryString })),
    ...[1_000, 100_000, 1_000_000].map((depth) => ({
      ...good,
      payload: `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`,
    })),
    ...[9_990, 10_001, 200_000].map((count) => ({ ...good, payload: manyKeys(count) })),
    { ...good, payload: `{"a":${"9".repeat(1_000_000)}}` },
    { ...good, payload: `{"a":"${"x".repeat(1_000_000)}"}` },
  ];
}

function header(at: number): readonly [string, string] {
  return [`x-${at}`, '"1"'];
}

function manyKeys(count: number): string {
  return `{${Array.from({ length: count }, (_, at) => `"k${at}":1`).join(",")}}`;
}
