/** A request as it stood on the wire, read without any leniency. */
export interface WireRequest {
  readonly method: string;
  readonly target: string;
  /** Names as written. */
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>;
  readonly body: Buffer;
}

/** What the first bytes of a socket are: a whole request and where it ends, a fault, or undefined while more must come. */
export type ReadRequest = { readonly request: WireRequest; readonly end: number } | { readonly fault: string };

const REQUEST_LINE = /^([A-Z]{3,12}|VERSION-CONTROL) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
/** RFC 9112 section 5, with the one space that everybody writes. */
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?((?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?)$/;
const END_OF_HEAD = "\r\n\r\n";

/** Fields that a relay has no business to send: hop-by-hop, forwarding, cookies, another framing (threats 2D). */
const FORBIDDEN =
  /^(?:te|trailer|transfer-encoding|upgrade|keep-alive|http2-settings|expect|cookie2?|set-cookie2?|forwarded|via|x-real-ip|x-rewrite-url|x-(?:http-)?method(?:-override)?|x-partner-key|x-pinc-.*|x-payload-type|(?:proxy|x-forwarded|x-original|x-envoy|cf|sec)-.*)$/;

/** Reads the request at the start of `bytes`. Pure. */
export function readWireRequest(bytes: Buffer): ReadRequest | undefined {
  const headEnd = bytes.indexOf(END_OF_HEAD);
  if (headEnd === -1) return bytes.length > 100_000 ? { fault: "a head without an end" } : undefined;
  const lines = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const [, method, target] = REQUEST_LINE.exec(lines[0] ?? "") ?? [];
  if (method === undefined || target === undefined) return { fault: `a malformed request line: ${lines[0]}` };
  const fields: Array<readonly [string, string]> = [];
  for (const line of lines.slice(1)) {
    const [, name, value] = FIELD_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return { fault: `a malformed field line: ${JSON.stringify(line)}` };
    fields.push([name, value]);
  }
  const bodyStart = headEnd + END_OF_HEAD.length;
  const end = bodyStart + lengthFrom(fields);
  if (Number.isNaN(end)) return { fault: "a malformed content-length" };
  if (bytes.length < end) return undefined;
  return { request: { method, target, fields, body: bytes.subarray(bodyStart, end) }, end };
}

function lengthFrom(fields: WireRequest["fields"]): number {
  const text = fieldValue(fields, "content-length") ?? "0";
  return /^(?:0|[1-9]\d{0,9})$/.test(text) ? Number(text) : Number.NaN;
}

/** The value of a field; undefined without it. */
export function fieldValue(fields: WireRequest["fields"], name: string): string | undefined {
  return fields.find(([key]) => key.toLowerCase() === name)?.[1];
}

/** What is wrong with a request, whatever the call was; undefined when nothing is. Pure. */
export function faultOf({ method, fields, body }: WireRequest, authority: string, isToken: (text: string) => boolean) {
  const names = fields.map(([name]) => name.toLowerCase());
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) return `${twice} stands twice on the wire`;
  const forbidden = names.find((name) => FORBIDDEN.test(name));
  if (forbidden !== undefined) return `${forbidden} went out`;
  if (fieldValue(fields, "host") !== authority) return `Host is ${fieldValue(fields, "host")}`;
  if (!isToken(fieldValue(fields, "authorization") ?? "")) return "Authorization is not a stored token";
  if (!/^(?:keep-alive|close)$/.test(fieldValue(fields, "connection") ?? "close")) return "Connection names fields";
  if (body.length > 0 && (method === "GET" || method === "HEAD")) return `${method} with a body`;
  return undefined;
}
