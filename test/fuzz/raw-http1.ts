import type { RelayPlace } from "./relay-process.js";

/** Whole requests of HTTP/1.1 that the relay serves, by name. */
export function createHttp1Requests(place: RelayPlace): ReadonlyMap<string, Buffer> {
  const { publicKey, origin } = place;
  const target = `/oauth/method/sandbox/call?user_id=user&public_key=${publicKey}`;
  const call = (path: string) => JSON.stringify({ url: `${origin}${path}`, method: "POST", payload: { a: [1, "b"] } });
  const typed = JSON.stringify({
    providerName: "sandbox",
    userId: "user",
    publicKey,
    call: JSON.parse(call("/echo-headers")),
  });
  const rpc = "/relay.v1.RelayService/Call";
  const via = (path: string) => `/via/sandbox/${new URL(origin).host}${path}`;
  const proof = [`X-Relay-Public-Key: ${publicKey}`, "X-Relay-User-Id: user"];
  const json = "Content-Type: application/json";
  const dotted = `body.url=${encodeURIComponent(`${origin}/me`)}&body.method=GET&body.headers.x-a=1`;
  const requests: ReadonlyArray<readonly [name: string, text: string]> = [
    ["rest", post(target, call("/echo-headers"), [json])],
    ["rest as text", post(target, call("/echo-token?as=raw"), ["Content-Type: text/plain", "Origin: https://a.test"])],
    ["rest chunked", chunked(target, call("/echo"), [json])],
    ["rest dotted", post(`${target}&${dotted}`, "", [])],
    ["rest with continue", post(target, call("/me"), [json, "Expect: 100-continue"])],
    ["connect", post(rpc, typed, [json, "Connect-Protocol-Version: 1", "Connect-Timeout-Ms: 5000"])],
    ["connect chunked", chunked(rpc, typed, [json])],
    ["grpc-web", post(rpc, framed(typed), ["Content-Type: application/grpc-web+json", "X-Grpc-Web: 1"])],
    ["grpc", post(rpc, framed(typed), ["Content-Type: application/grpc+json", "TE: trailers"])],
    ["preflight", head("OPTIONS", target, ["Origin: https://a.test", "Access-Control-Request-Method: POST"])],
    ["health", head("GET", "/healthz", [])],
    [
      "upgrade",
      head("GET", "/readyz", ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"]),
    ],
    ["not found", head("GET", "/nowhere", [])],
    ["pipelined", head("GET", "/healthz", []) + post(target, call("/me"), [json]) + head("GET", "/readyz", [])],
    ["via", head("GET", via("/me"), ["Authorization: Bearer x", ...proof])],
    ["via with a body", post(via("/echo?a=%2F"), "a=1&b=2", ["Content-Type: text/plain", ...proof])],
    ["via chunked", chunked(via("/echo-token?as=raw"), "abcdef", ["Trailer: X-T", ...proof])],
    ["via with continue", post(via("/echo"), "{}", [json, "Expect: 100-continue", ...proof])],
    [
      "via pipelined",
      head("GET", via("/me"), proof) + head("DELETE", via("/echo"), proof) + head("GET", "/readyz", []),
    ],
    ["partner key", post(target, call("/me"), [json, `X-Partner-Key: ${publicKey}.wrong`, "Authorization: Bearer x"])],
  ];
  return new Map(requests.map(([name, text]) => [name, Buffer.from(text, "latin1")]));
}

/** A request without a body. */
export function head(method: string, target: string, fields: readonly string[]): string {
  return [`${method} ${target} HTTP/1.1`, "Host: relay.test", ...fields, "", ""].join("\r\n");
}

/** A request with a body of known length. */
export function post(target: string, body: string, fields: readonly string[]): string {
  return head("POST", target, [...fields, `Content-Length: ${Buffer.byteLength(body, "latin1")}`]) + body;
}

function chunked(target: string, body: string, fields: readonly string[]): string {
  const half = body.length >> 1;
  const chunks = [body.slice(0, half), body.slice(half)].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
  return `${head("POST", target, [...fields, "Transfer-Encoding: chunked"])}${chunks.join("")}0\r\n\r\n`;
}

/** One message of gRPC: no compression, length, bytes. */
function framed(message: string): string {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return prefix.toString("latin1") + message;
}
