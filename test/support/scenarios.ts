import { expect } from "vitest";
import { signCallToken, type TokenParts } from "./call-tokens.js";
import type { ScenarioCall } from "./callers.js";
import { type Harness, type HarnessOptions, startHarness, type TestApplication } from "./harness.js";

/** A user whose id must be taken as it is. */
export const USER = "a+b@example.com";

/** A relay with what the scenarios need. */
export interface World {
  readonly harness: Harness;
  readonly application: TestApplication;
  readonly disabled: TestApplication;
  /** What the sandbox takes of {@link USER}. */
  readonly token: string;
}

/** Starts a relay on the sandbox, with a deadline of a second and answers of 100,000 bytes at most. */
export async function startWorld(options: Pick<HarnessOptions, "definitionsFor"> = {}): Promise<World> {
  const harness = await startHarness({
    ...options,
    env: { RELAY_MAX_RESPONSE_BYTES: "100000", RELAY_DEADLINE_MS: "1000" },
    providers: [
      { name: "closed", apiOrigins: ["http://127.0.0.1:1"] },
      { name: "tenant", apiOrigins: ["https://{tenant}.example.com"] },
    ],
  });
  const application = await harness.createApplication();
  const disabled = await harness.createApplication({ state: "DISABLED" });
  const token = await harness.connect(application, USER, { idToken: "CANARY_ID_TOKEN_0123456789" });
  await harness.connect(application, USER, { providerName: "closed" });
  await harness.connect(application, USER, { providerName: "tenant", originParameters: { tenant: "acme" } });
  await harness.connect(application, "expired", { expiresAt: 1 });
  await harness.connect(application, "refreshable", { expiresAt: 1, refreshToken: "CANARY_REFRESH_0123456789" });
  return { harness, application, disabled, token };
}

/** The call of a scenario, in the JSON of the contract. */
export function callOf(world: World, scenario: Scenario): ScenarioCall {
  const { to, call, outer, callToken, application = "application" } = scenario;
  const url = to.startsWith("/") && !to.startsWith("//") ? world.harness.sandbox.origin + to : to;
  const caller =
    callToken === undefined
      ? { userId: USER, publicKey: world[application].publicKey }
      : { userId: "", publicKey: "", outerHeaders: authorizationWith(callToken, world[application]) };
  return {
    providerName: "sandbox",
    ...caller,
    ...outer,
    call: { url, method: "GET", ...call },
  };
}

function authorizationWith({ header, claims }: TokenParts, application: TestApplication) {
  const text = signCallToken(application, { header, claims: { sub: USER, ...claims } });
  return { authorization: `Bearer ${text}` };
}

/** One call and the row it must give, the same over every protocol. */
export interface Scenario {
  readonly name: string;
  /** Path at the sandbox, or a whole url. */
  readonly to: string;
  readonly call?: Readonly<Record<string, unknown>>;
  readonly outer?: Partial<ScenarioCall>;
  /** Shown in `Authorization`, in the place of public key and user id; it is for {@link USER} unless it says otherwise. */
  readonly callToken?: TokenParts;
  /** Whose call it is; that of the application that may call, unless told. */
  readonly application?: "application" | "disabled";
  /** It does nothing but wait, so that it may be tried over all protocols at once. */
  readonly isWaiting?: true;
  /** Why it has no meaning for a stream; every other scenario is streamed, too. */
  readonly notStreamed?: string;
  readonly row: Readonly<Record<string, unknown>>;
}

const ok = (row: Readonly<Record<string, unknown>>) => ({ pincStatus: "success", statusCode: 200, ...row });
const json = (data: unknown) => ok({ contentType: "application/json", data });
/** What an error row has at least. */
export const error = (errorType: string, statusCode: number) => ({ pincStatus: "error", errorType, statusCode });

/** Every kind of answer and of refusal. */
export const SCENARIOS: readonly Scenario[] = [
  { name: "a profile", to: "/me", row: json(expect.objectContaining({ login: expect.any(String) })) },
  { name: "a JSON list", to: "/items?count=2", row: json([expect.anything(), expect.anything()]) },
  { name: "204", to: "/no-content", row: ok({ statusCode: 204, data: {} }) },
  { name: "an empty body", to: "/empty", row: json({}) },
  {
    name: "text in another charset",
    to: "/text?charset=windows-1251",
    row: ok({ contentType: "text/plain", data: expect.stringMatching(/[а-я]/) }),
  },
  { name: "HTML", to: "/html", row: ok({ contentType: "text/html", data: expect.stringContaining("<") }) },
  {
    name: "binary",
    to: "/image",
    row: ok({ contentType: "image/png", dataEncoding: "base64", data: expect.stringMatching(/^iVBORw0KGgo/) }),
  },
  { name: "invalid JSON", to: "/invalid-json", row: json('{"id": 1, "name": "cut sho') },
  { name: "gzip", to: "/gzip", row: json(expect.anything()) },
  { name: "br", to: "/br", row: json(expect.anything()) },
  { name: "deflate", to: "/deflate", row: json(expect.anything()) },
  { name: "raw deflate", to: "/deflate-raw", row: json(expect.anything()) },
  {
    name: "a redirect that is not followed",
    to: "/redirect?to=http%3A%2F%2F127.0.0.1%3A1%2F",
    row: {
      pincStatus: "success",
      statusCode: 302,
      headers: expect.objectContaining({ Location: "http://127.0.0.1:1/" }),
    },
  },
  {
    name: "404 with a body",
    to: "/status/404?body=gone",
    row: {
      ...error("API_ERROR", 404),
      contentType: "application/json",
      data: expect.anything(),
      headers: expect.anything(),
    },
  },
  {
    name: "a provider's 500",
    to: "/status/500",
    row: { ...error("API_ERROR", 500), inernalError: expect.stringContaining("500") },
  },
  {
    name: "repeated fields",
    to: "/multi",
    row: ok({ headers: expect.objectContaining({ Link: expect.stringMatching(/>.*, </) }) }),
  },
  {
    name: "cookies, dropped",
    to: "/cookies",
    row: ok({ headers: expect.not.objectContaining({ "Set-Cookie": expect.anything() }) }),
  },
  { name: "no payload", to: "/echo", call: { method: "POST" }, row: json(expect.objectContaining({ bodyBytes: 0 })) },
  {
    name: "a null payload",
    to: "/echo",
    call: { method: "POST", payload: null, headers: null, queryString: null },
    row: json(expect.objectContaining({ bodyBytes: 0 })),
  },
  {
    name: "an empty payload",
    to: "/echo",
    call: { method: "POST", payload: {}, headers: {}, queryString: {} },
    row: json(expect.objectContaining({ bodyBytes: 0 })),
  },
  {
    name: "a payload",
    to: "/echo",
    call: { method: "post", payload: { b: 1, a: [true, null] } },
    row: json(expect.objectContaining({ method: "POST", body: '{"b":1,"a":[true,null]}' })),
  },
  {
    name: "exact bytes",
    to: "/raw-echo",
    call: { method: "PUT", body: "AP8=", headers: { "content-type": "image/x-test" } },
    row: ok({ contentType: "image/x-test", data: "AP8=", dataEncoding: "base64" }),
  },
  {
    name: "a query string",
    to: "/echo?a=1",
    call: { queryString: { b: true, c: ["x", "y"], d: { e: 1 } } },
    row: json(expect.objectContaining({ target: "/echo?a=1&b=true&c=x%2Cy&d=%7B%22e%22%3A1%7D" })),
  },
  {
    name: "a query as it was written",
    to: "/echo/a%2Fb//c?q=~'()*+%20&&x=&x=",
    row: json(expect.objectContaining({ target: "/echo/a%2Fb//c?q=~'()*+%20&&x=&x=" })),
  },
  {
    name: "arrays that are exploded",
    to: "/echo?a=1",
    call: { queryString: { b: ["x", "y"], "c[]": [1] }, payload: { d: [true, false] }, explodeArrays: true },
    row: json(expect.objectContaining({ target: "/echo?a=1&b=x&b=y&c%5B%5D=1&d=true&d=false" })),
  },
  {
    name: "arrays of a form that are exploded",
    to: "/echo",
    call: { method: "FORM", payload: { a: [1, 2], b: "c" }, explodeArrays: true },
    row: json(expect.objectContaining({ method: "POST", body: "a=1&a=2&b=c" })),
  },
  {
    name: "an empty payload that is JSON",
    to: "/echo",
    call: { method: "POST", payload: {}, headers: { "content-type": "application/json" } },
    row: json(expect.objectContaining({ body: "{}" })),
  },
  {
    name: "a payload as plain text",
    to: "/echo",
    call: { method: "POST", payload: { a: "b" }, headers: { "content-type": "text/plain" } },
    row: { ...error("CALL_FORMAT_ERROR", 400), inernalError: expect.stringContaining("as body") },
  },
  {
    name: "a method of WebDAV",
    to: "/echo",
    call: { method: "propfind", body: "PHgvPg==", headers: { "content-type": "application/xml", Depth: "1" } },
    row: json(
      expect.objectContaining({
        method: "PROPFIND",
        body: "<x/>",
        headers: expect.arrayContaining([["Depth", "1"]]),
      }),
    ),
  },
  {
    name: "GET with a body",
    to: "/echo",
    call: { body: "e30=", headers: { "content-type": "application/json" } },
    row: json(expect.objectContaining({ method: "GET", body: "{}" })),
  },
  {
    name: "a header name with an underscore",
    to: "/echo",
    call: { headers: { x_api_version: "2", content_length: "99" } },
    row: json(
      expect.objectContaining({
        headers: expect.not.arrayContaining([["content_length", "99"]]),
      }),
    ),
  },
  {
    name: "content_type, which is content-type",
    to: "/echo",
    call: { method: "POST", payload: { a: "b c" }, headers: { Content_Type: "application/x-www-form-urlencoded" } },
    row: json(
      expect.objectContaining({
        headers: expect.arrayContaining([["content-type", "application/x-www-form-urlencoded"]]),
        body: "a=b+c",
      }),
    ),
  },
  {
    name: "the bytes of the body",
    to: "/image",
    outer: { responseMode: "RESPONSE_MODE_BODY" },
    row: ok({ contentType: "image/png", body: expect.stringMatching(/^iVBORw0KGgo/) }),
  },
  {
    name: "GETFILE",
    to: "/me",
    call: { method: "GETFILE" },
    row: ok({ contentType: "application/json", dataEncoding: "base64", data: expect.stringMatching(/^eyJ/) }),
  },
  {
    name: "the token echoed in the body",
    to: "/echo-headers",
    row: json(expect.objectContaining({ headers: expect.arrayContaining([["authorization", "Bearer [redacted]"]]) })),
  },
  { name: "the token echoed as base64", to: "/echo-token?as=base64", row: ok({ data: expect.anything() }) },
  {
    name: "the token echoed in a header",
    to: "/echo-token?as=header",
    row: ok({ headers: expect.objectContaining({ "X-Access-Token": "[redacted]" }) }),
  },
  {
    name: "the token echoed in Location",
    to: "/echo-token?as=location",
    row: {
      pincStatus: "success",
      statusCode: 302,
      headers: expect.objectContaining({ Location: expect.stringContaining("[redacted]") }),
    },
  },

  { name: "no url", to: "", row: { ...error("CALL_FORMAT_ERROR", 400), inernalError: "url is missing." } },
  {
    name: "no method",
    to: "/me",
    call: { method: "" },
    row: { ...error("CALL_FORMAT_ERROR", 400), inernalError: "method is missing." },
  },
  {
    name: "an unknown method",
    to: "/me",
    call: { method: "TRACE" },
    row: { ...error("CALL_FORMAT_ERROR", 400), inernalError: expect.stringContaining("method") },
  },
  {
    name: "a header that would end the line",
    to: "/me",
    call: { headers: { "x-a": "1\r\nHost: evil" } },
    row: { ...error("CALL_FORMAT_ERROR", 400), inernalError: expect.stringContaining("x-a") },
  },
  {
    name: "body and payload",
    to: "/me",
    call: { method: "POST", body: "AA==", payload: { a: 1 } },
    row: error("CALL_FORMAT_ERROR", 400),
  },
  {
    name: "no user",
    to: "/me",
    outer: { userId: "" },
    row: { ...error("CALL_FORMAT_ERROR", 400), inernalError: expect.stringContaining("user_id") },
  },
  {
    name: "no public key",
    to: "/me",
    outer: { publicKey: "" },
    row: { ...error("CALL_FORMAT_ERROR", 400), inernalError: expect.stringContaining("public_key") },
  },
  { name: "an unknown public key", to: "/me", outer: { publicKey: "nobody" }, row: error("INVALID_PUBLIC_KEY", 401) },
  { name: "a disabled application", to: "/me", application: "disabled", row: error("INVALID_PUBLIC_KEY", 401) },
  {
    name: "a wrong private key",
    to: "/me",
    outer: { privateKey: "relay_sk_wrong" },
    row: error("CALLER_NOT_ALLOWED", 403),
  },
  { name: "a wrong user signature", to: "/me", outer: { userSignature: "00" }, row: error("CALLER_NOT_ALLOWED", 403) },
  {
    name: "a browser that is not listed",
    to: "/me",
    outer: { outerHeaders: { origin: "https://evil.test" } },
    row: error("CALLER_NOT_ALLOWED", 403),
  },
  {
    name: "a call token alone",
    to: "/me",
    callToken: {},
    row: json(expect.objectContaining({ login: expect.any(String) })),
  },
  {
    name: "a call token beside the user and the key that it names",
    to: "/me",
    callToken: { claims: { providers: ["other", "sandbox"], rules: [{ methods: ["POST"] }, { paths: ["/me"] }] } },
    outer: { userId: USER },
    row: json(expect.anything()),
  },
  {
    name: "a call token beside another user",
    to: "/me",
    callToken: {},
    outer: { userId: "expired" },
    row: { ...error("CALLER_NOT_ALLOWED", 403), inernalError: expect.stringContaining("sub") },
  },
  {
    name: "a call token beside another public key",
    to: "/me",
    callToken: {},
    outer: { publicKey: "nobody" },
    row: error("INVALID_PUBLIC_KEY", 401),
  },
  {
    name: "a call token of a disabled application",
    to: "/me",
    callToken: {},
    application: "disabled",
    row: error("INVALID_PUBLIC_KEY", 401),
  },
  {
    name: "a call token that has expired",
    to: "/me",
    callToken: { claims: { iat: 1, exp: 2 } },
    row: { ...error("CALLER_NOT_ALLOWED", 403), inernalError: expect.stringContaining("expired") },
  },
  {
    name: "a call token of another type",
    to: "/me",
    callToken: { header: { alg: "HS256", typ: "JWT" } },
    row: { ...error("CALLER_NOT_ALLOWED", 403), inernalError: expect.stringContaining("typ") },
  },
  {
    name: "a call token for another provider",
    to: "/me",
    callToken: { claims: { providers: ["tenant"] } },
    row: { ...error("CALL_NOT_PERMITTED", 403), inernalError: expect.stringContaining("other providers") },
  },
  {
    name: "a method that the rules of a call token do not have",
    to: "/echo",
    call: { method: "FORM", payload: { a: 1 } },
    callToken: { claims: { rules: [{ methods: ["GET"] }] } },
    row: { ...error("CALL_NOT_PERMITTED", 403), inernalError: expect.stringContaining("POST") },
  },
  {
    name: "a method in a parameter that the rules of a call token do not have",
    to: "/echo?a=1",
    call: { queryString: { _method: "DELETE" } },
    callToken: { claims: { rules: [{ methods: ["GET"] }] } },
    row: { ...error("CALL_NOT_PERMITTED", 403), inernalError: expect.stringContaining("method override") },
  },
  {
    name: "a path that leads out of the rules of a call token",
    to: "/echo/../me",
    callToken: { claims: { rules: [{ paths: ["/echo/**"] }] } },
    row: error("CALL_NOT_PERMITTED", 403),
  },
  {
    name: "a path that a provider may read as another one",
    to: "/echo/..%2Fme",
    callToken: { claims: { rules: [{ paths: ["/echo/**"] }] } },
    row: { ...error("CALL_NOT_PERMITTED", 403), inernalError: expect.stringContaining("ambiguous path") },
  },
  {
    name: "a path that the rules of a call token have",
    to: "/echo/a?b=c",
    callToken: { claims: { rules: [{ paths: ["/echo/*"], methods: ["GET"] }] } },
    row: json(expect.objectContaining({ target: "/echo/a?b=c" })),
  },
  {
    name: "a host that the rules of a call token do not have",
    to: "/me",
    callToken: { claims: { rules: [{ hosts: ["127.0.0.1"] }] } },
    row: error("CALL_NOT_PERMITTED", 403),
  },
  {
    name: "a call that no rule has, for a user who is not connected",
    to: "/me",
    callToken: { claims: { sub: "nobody", rules: [{ paths: ["/other"] }] } },
    row: error("CALL_NOT_PERMITTED", 403),
  },

  { name: "an unknown provider", to: "/me", outer: { providerName: "nobody" }, row: error("INVALID_PROVIDER", 404) },
  {
    name: "a provider named like an object's member",
    to: "/me",
    outer: { providerName: "__proto__" },
    row: error("INVALID_PROVIDER", 404),
  },
  { name: "another host", to: "https://evil.test/", row: error("URL_NOT_ALLOWED", 403) },
  { name: "userinfo", to: "https://x@evil.test/", row: error("URL_NOT_ALLOWED", 403) },
  { name: "no absolute url", to: "//evil.test/", row: error("URL_NOT_ALLOWED", 403) },
  {
    name: "another tenant's host",
    to: "https://other.example.com/",
    outer: { providerName: "tenant" },
    row: error("URL_NOT_ALLOWED", 403),
  },
  {
    name: "a user who never connected",
    to: "/me",
    outer: { userId: "a b@example.com" },
    row: { ...error("INVALID_OAUTHID", 401), inernalError: expect.stringContaining("+") },
  },
  {
    name: "an expired connection",
    to: "/me",
    outer: { userId: "expired" },
    row: error("REAUTHORIZATION_REQUIRED", 401),
  },
  {
    name: "an expired connection with a refresh token",
    to: "/me",
    outer: { userId: "refreshable" },
    row: error("REFRESH_UNAVAILABLE", 503),
  },
  {
    name: "a provider that does not answer",
    to: "http://127.0.0.1:1/",
    outer: { providerName: "closed" },
    row: error("PROVIDER_UNREACHABLE", 502),
  },
  { name: "a provider that is too slow", to: "/slow?ms=10000", isWaiting: true, row: error("PROVIDER_TIMEOUT", 504) },
  {
    name: "an answer over the limit",
    to: "/json?size=100001",
    notStreamed: "a stream has no limit of size",
    row: error("RESPONSE_TOO_LARGE", 502),
  },
  {
    name: "a small answer that is over the limit once decoded",
    to: "/gzip-bomb?mib=1",
    notStreamed: "a stream is ended in its middle, with what was sent of it",
    row: error("RESPONSE_TOO_LARGE", 502),
  },
];

/**
 * The protocols that the scenario at this place is tried over: all of them. Where the same tests run once more, on another
 * store or on workers, TEST_TURN is a number, and each scenario has one of them, in turn from that one on; `npm run
 * test:long` tries all there, too.
 */
export function protocolsAt<Protocol>(protocols: readonly Protocol[], place: number): readonly Protocol[] {
  const turn = Number(process.env["TEST_TURN"] ?? "all");
  return Number.isNaN(turn) ? protocols : protocols.filter((_, at) => at === (place + turn) % protocols.length);
}
