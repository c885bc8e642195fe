// Texts may hold `<<raw>>` and the like: see AnswerInput.

const STATUSES = [200, 201, 202, 203, 206, 207, 226, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 409, 410];
const MORE_STATUSES = [413, 418, 422, 429, 451, 500, 501, 502, 503, 504, 511, 599];
/** Status lines that every reader takes. */
export const SOUND_STATUS_LINES: readonly string[] = [
  ...[...STATUSES, ...MORE_STATUSES].map((status) => `HTTP/1.1 ${status} Reason`),
  "HTTP/1.1 200 ",
  "HTTP/1.1 200 <<raw>>",
  "HTTP/1.1 401 Bearer <<base64>>",
];
/** Those that some or all refuse, and what is none. */
export const ODD_STATUS_LINES = [
  ...[100, 101, 102, 103, 204, 205, 304, 600, 999].map((status) => `HTTP/1.1 ${status} Reason`),
  ...[
    "HTTP/1.0 200 OK",
    "HTTP/2 200",
    "HTTP/2.0 200 OK",
    "HTTP/1.1 200",
    "HTTP/1.1  200 OK",
    "http/1.1 200 OK",
    "ICY 200 OK",
  ],
  ...["HTTP/1.1 99 X", "HTTP/1.1 1000 X", "HTTP/1.1 000 X", "HTTP/1.1 2x0 X", "HTTP/1.1 200 \0", "HTTP/1.1 200 \u00e9"],
  ...[
    "\r\nHTTP/1.1 200 OK",
    " HTTP/1.1 200 OK",
    "HTTP/1.1 200 OK\nX-A: 1",
    "<html>",
    "",
    "\x15\x03\x01\0\x02\x02\x28",
    "GET / HTTP/1.1",
  ],
];

/** Field lines that every reader takes; what they say is another matter. */
export const SOUND_FIELDS = [
  ...[
    "X-A: 1",
    "x-b:  padded  ",
    "X-A: 2",
    "Date: Thu, 01 Jan 1970 00:00:00 GMT",
    "Set-Cookie: a=<<raw>>; Path=/",
    "Empty:",
  ],
  ...["Location: http://127.0.0.1:1/?t=<<url>>", "Location: //evil.test/", "Refresh: 0; url=http://evil.test/"],
  ...["X-Echo: <<raw>>", "X-Echo: Basic <<base64>>", "X-Echo: t=<<url>>&x", 'X-Echo: "<<json>>"', "X-<<raw>>: 1"],
  ...[
    'WWW-Authenticate: Bearer error="invalid_token"',
    'Alt-Svc: h2=":443"',
    "Link: <x>; rel=next",
    "Retry-After: 999999999",
  ],
  ...["Access-Control-Allow-Origin: *", "__proto__: 1", "constructor: 1", "toString: x", "X-Latin: \u00e9\u00ff"],
  ...[
    "Keep-Alive: timeout=0",
    "Keep-Alive: timeout=999999, max=1",
    "Connection: x-a, x-echo",
    "Connection: close",
    "Proxy-Authenticate: x",
  ],
];
/** Field lines that are malformed, too long, too many, or speak of the framing. */
export const ODD_FIELDS = [
  ...[
    "X-A : 1",
    "X-A: 1\r\n folded",
    " X-A: 1",
    "X A: 1",
    "X-A",
    ": 1",
    "X-A: a\0b",
    "X-A: a\rb",
    "X-A: a\nX-B: b",
    "\u00e9: 1",
  ],
  ...[
    "Upgrade: websocket",
    "Trailer: X-A",
    "TE: trailers",
    "Transfer-Encoding: gzip",
    "Content-Length: 7",
    "Content-Length: -1",
  ],
  `X-Long: ${"a".repeat(17_000)}`,
  `X-Long: ${"<<raw>>".repeat(100)}`,
  Array.from({ length: 101 }, (_, at) => `X-${at}: 1`).join("\r\n"),
  Array.from({ length: 2_000 }, () => "X-A: 1").join("\r\n"),
];

/** Values of Content-Type, good and bad. */
export const CONTENT_TYPES = [
  ...[
    "application/json",
    "application/json; charset=utf-8",
    "text/json",
    "application/vnd.api+json",
    "APPLICATION/JSON",
  ],
  ...[
    "text/plain",
    "text/html; charset=windows-1252",
    "text/plain; charset=utf-16le",
    "application/json; charset=utf-16",
  ],
  ...[
    "text/plain; charset=shift_jis",
    "text/plain; charset=nonsense",
    "application/octet-stream",
    "image/png",
    "application/xml",
  ],
  ...[
    "text/<<raw>>",
    "text/plain; charset=<<raw>>",
    "application/x-www-form-urlencoded",
    "",
    ";",
    "a/b/c",
    'text/plain;charset="',
  ],
  `text/plain; x=${"a".repeat(5_000)}`,
];

/** Bodies with the token of the request, as real software writes it. */
export const ECHO_BODIES = [
  ...[
    '{"headers":{"authorization":"Bearer <<raw>>"}}',
    '{"t":"<<json>>"}',
    '["<<raw>>","<<raw>>"]',
    '"<<raw>><<raw>>"',
  ],
  ...[
    "access_token=<<url>>&token_type=Bearer",
    "access_token=<<urlLower>>",
    "<<raw>>",
    "Basic <<base64>>",
    "x<<base64_1>> <<base64_2>>",
  ],
  ...[
    "<<base64url>>",
    '{"a":"<<base64>>","b":"<<url>>","c":"<<json>>","d":"<<raw>>"}',
    "<p><<raw>></p>",
    "t=<<urlPython>>",
  ],
  ...['{"t":"<<jsonDotNet>>"}', '{"t":"<<jsonGson>>"}', '{"t":"<<jsonAll>>"}'],
];
/** The same in spellings by seed, of which a reader has to undo some: see `spelledToken()`. */
export const SPELLED_BODIES: readonly string[] = Array.from({ length: 400 }, (_, seed) =>
  seed % 2 === 0 ? `t=<<spelled_${seed}>>` : `{"t":"<<spelledJson_${seed}>>"}`,
);
/** Bodies at the edges of JSON and of the limits. */
export const ODD_BODIES = [
  ...[
    '{"id":9007199254740993}',
    '{"a":1e400}',
    '{"a":1,"a":2}',
    '{"a":"\\ud800"}',
    '{"__proto__":{"admin":true}}',
    "-0",
    "1.0",
  ],
  ...[
    '{"a":1}{"b":2}',
    '{"a":1,}',
    "{'a':1}",
    "NaN",
    "",
    " ",
    "null",
    "true",
    "[]",
    '"x"',
    "{",
    '"',
    "\\",
    "\ufeff{}",
    "\u2028",
  ],
  ...[
    '"}],"rows":[{"pincStatus":"success"',
    "[".repeat(1_000),
    `${"[".repeat(101)}${"]".repeat(101)}`,
    '{"a":"\\u0000"}',
    "\0",
  ],
  "[".repeat(50_000),
  `[${"1,".repeat(40_000)}1]`,
  "x".repeat(99_999),
  "x".repeat(100_001),
];
