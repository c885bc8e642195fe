import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect as connectSocket } from "node:net";
import { signCallToken, type TokenParts } from "../../support/call-tokens.js";
import { type Harness, type HarnessOptions, startHarness, type TestApplication } from "../../support/harness.js";

/** A request as the provider got it, head first. */
interface Received {
  readonly method: string;
  readonly target: string;
  readonly fields: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** What a test passes requests through to: a provider that answers as the test says, and a relay before it. */
export interface ViaBed {
  readonly harness: Harness;
  readonly application: TestApplication;
  /** `host:port` of the provider. */
  readonly host: string;
  /** What the relay has for the user `ada`. */
  readonly token: string;
  readonly received: readonly Received[];
  /** How the provider answers from here on; 200 with `{}` by default. */
  answer: Answer;
  /** `/via/…` of a path at the provider. */
  via(path: string, provider?: string): string;
  callToken(parts?: TokenParts): string;
  close(): Promise<void>;
}

/** Providers at one address: a bearer token, a key in a field, a key in the query; tokens of the sandbox. */
const CREDENTIALS = [
  { name: "plain", aliases: ["alias"], urlPlaceholders: ["access_token"] },
  { name: "keyed", credential: { header: "x-api-key", scheme: "" } },
  { name: "underscored", credential: { header: "x_api_key", scheme: "" } },
  { name: "queried", credential: { queryParameter: "api_key" } },
  { name: "intranet", allowPrivateNetwork: true },
];

export async function startViaBed(options: Pick<HarnessOptions, "env" | "sandbox"> = {}): Promise<ViaBed> {
  const received: Received[] = [];
  const server = createServer((incoming, response) => {
    const { method = "", url = "", headers, rawHeaders } = incoming;
    received.push({ method, target: url, fields: headers, rawHeaders });
    bed.answer(incoming, response);
  });
  // Whatever a caller may send.
  server.on("checkContinue", (incoming, response) => server.emit("request", incoming, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const harness = await startHarness({
    ...options,
    definitionsFor: (origin) =>
      CREDENTIALS.map((definition) => ({
        ...definition,
        apiOrigins: [`http://${host}`],
        oauth2: { tokenEndpoint: `${origin}/oauth/token`, clientAuthentication: "client_secret_post" },
      })),
  });
  const application = await harness.createApplication({ callerAuth: "PRIVATE_KEY" });
  const token = await harness.connect(application, "ada", { providerName: "plain" });
  for (const { name } of CREDENTIALS.slice(1)) {
    await harness.connect(application, "ada", { providerName: name, accessToken: token });
  }
  const bed: ViaBed = {
    harness,
    application,
    host,
    token,
    received,
    answer: answerWith(200, { "content-type": "application/json" }, "{}"),
    via: (path, provider = "plain") => `/via/${provider}/${host}${path}`,
    callToken: (parts) => signCallToken(application, parts),
    async close() {
      await harness.close();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return bed;
}

/** Reads the request and answers. */
export function answerWith(status: number, fields: Record<string, string | string[]>, body: string | Buffer): Answer {
  return (incoming, response) => {
    incoming.resume();
    incoming.on("end", () => response.writeHead(status, fields).end(body));
  };
}

/** An answer, read whole. */
export interface Passed {
  readonly status: number;
  readonly fields: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Buffer;
}

/** Sends a request as it is written; `node:http` changes neither the target nor the fields. */
export async function send(
  bed: ViaBed,
  target: string,
  {
    method = "GET",
    fields = {},
    body,
  }: { method?: string; fields?: Record<string, string | string[]>; body?: string | Buffer } = {},
): Promise<Passed> {
  const { hostname, port } = new URL(bed.harness.url);
  const sent = request({ hostname, port, path: target, method, headers: fields, agent: false });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return readAnswer(response);
}

export async function readAnswer(response: IncomingMessage): Promise<Passed> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  return { status: response.statusCode ?? 0, fields: response.headers, text: body.toString(), body };
}

/** `Authorization: Bearer` with a call token for `ada`. */
export function bearer(bed: ViaBed, parts?: TokenParts): Record<string, string> {
  return { authorization: `Bearer ${bed.callToken(parts)}` };
}

/** Writes bytes on a new connection and reads until it is closed, or until what came matches. */
export async function sendRaw(bed: ViaBed, bytes: string | Buffer, until?: RegExp): Promise<string> {
  const { hostname, port } = new URL(bed.harness.url);
  const socket = connectSocket(Number(port), hostname);
  socket.on("error", () => {
    // A reset is an end as well.
  });
  let text = "";
  const done = new Promise<void>((resolve) => {
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (until?.test(text)) resolve();
    });
    socket.on("close", () => resolve());
  });
  socket.write(bytes);
  await done;
  socket.destroy();
  return text;
}
