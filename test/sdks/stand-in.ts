import { createHash } from "node:crypto";
import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Authority } from "../support/certificates.js";

/** A request as a route sees it. */
export interface Asked {
  /** Segments that the stars of the route stand for. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly fields: IncomingHttpHeaders;
  /** Its first MiB. */
  readonly body: Buffer;
  /** How often this route was asked before, in the same run. */
  readonly before: number;
}

/** An answer; an object is sent as JSON. */
export interface Reply {
  readonly status?: number;
  readonly fields?: Readonly<Record<string, string>>;
  readonly body?: object | string | Buffer;
}

/**
 * What providers answer, by `METHOD host/path`, where a star is one segment. `open METHOD …` needs no credential: such an
 * address was handed out for one upload or download.
 */
export type Routes = Readonly<Record<string, (asked: Asked) => Reply>>;

/** A request as its provider got it; the boundary of a multipart body, which is random, under another name. */
export interface Received {
  readonly method: string;
  readonly host: string;
  /** Path and query, byte for byte. */
  readonly target: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly bodyBytes: number;
  readonly bodyHash: string;
}

/** All providers at once: the name of the host says which of them is asked. */
export interface StandIn {
  /** Ports on 127.0.0.1: one for the SDKs themselves, one for the relay. */
  readonly ports: { readonly sdk: number; readonly relay: number };
  /** Begins a run of these routes, in which nothing was asked yet; only this token is let in. */
  begin(routes: Routes, credential: string): void;
  /** What came in this run. */
  readonly received: readonly Received[];
  /** Hosts that were asked by an SDK itself in this run. */
  readonly askedBySdk: ReadonlySet<string>;
  /** What a provider would have refused in this run. */
  readonly faults: readonly string[];
  close(): void;
}

const MAX_KEPT_BYTES = 1024 * 1024;

/** Starts the providers on free ports of 127.0.0.1, with a certificate for each name that is asked for. */
export async function startStandIn(authority: Authority): Promise<StandIn> {
  let run = startRun({}, "");
  const contexts = new Map<string, SecureContext>();
  const contextOf = (name: string) => {
    const context = contexts.get(name) ?? createSecureContext(authority.issue({ names: [name] }));
    contexts.set(name, context);
    return context;
  };
  const servers = await Promise.all(
    [true, false].map(async (isSdk) => {
      const server = createServer({ SNICallback: (name, done) => done(null, contextOf(name)) }, (request, response) => {
        if (isSdk) run.askedBySdk.add(request.headers.host ?? "");
        void run.answer(request).then((reply) => send(response, reply));
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return { server, port: (server.address() as AddressInfo).port };
    }),
  );
  const [sdk = 0, relay = 0] = servers.map(({ port }) => port);
  return {
    ports: { sdk, relay },
    begin(routes, credential) {
      run = startRun(routes, credential);
    },
    get received() {
      return run.received;
    },
    get askedBySdk() {
      return run.askedBySdk;
    },
    get faults() {
      return run.faults;
    },
    close() {
      for (const { server } of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

function startRun(routes: Routes, credential: string) {
  const received: Received[] = [];
  const faults: string[] = [];
  const askedBySdk = new Set<string>();
  const counts = new Map<string, number>();
  const answer = async (request: IncomingMessage): Promise<Reply> => {
    const { method = "", url: target = "", headers: fields } = request;
    const host = fields.host ?? "";
    const place = received.push({ method, host, target, fields: {}, bodyBytes: 0, bodyHash: "" }) - 1;
    const { kept, ...body } = await readBody(request);
    received[place] = { method, host, target, ...body };
    const { pathname, searchParams: query } = new URL(target, `https://${host}`);
    const asked = `${method} ${host}${pathname}`;
    const found = findRoute(routes, asked);
    if (found === undefined) {
      faults.push(`nothing answers ${asked}`);
      return { status: 404, body: {} };
    }
    if (!found.isOpen && credentialOf(fields) !== credential) {
      faults.push(`${asked} came with another credential`);
      return { status: 401, body: {} };
    }
    const before = counts.get(found.name) ?? 0;
    counts.set(found.name, before + 1);
    return found.route({ parts: found.parts, query, fields, body: kept, before });
  };
  return { received, faults, askedBySdk, answer };
}

/** GitHub takes `token` for `Bearer` as well, and any case of either (RFC 9110 section 11.1). */
function credentialOf({ authorization = "" }: IncomingHttpHeaders): string {
  return authorization.replace(/^(?:Bearer|token) /i, "");
}

function findRoute(routes: Routes, asked: string) {
  for (const [name, route] of Object.entries(routes)) {
    const pattern = name.replace(/^open /, "").replace(/[.+?^${}()|[\]\\]/g, "\\$&");
    const match = new RegExp(`^${pattern.replaceAll("*", "([^/]*)")}$`).exec(asked);
    if (match !== null) return { name, route, parts: match.slice(1), isOpen: name.startsWith("open ") };
  }
  return undefined;
}

const BOUNDARY = /boundary=("?)([^";]+)\1/;

async function readBody(request: IncomingMessage) {
  const chunks: Buffer[] = [];
  const hash = createHash("sha256");
  let bodyBytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    hash.update(chunk);
    if (bodyBytes < MAX_KEPT_BYTES) chunks.push(chunk);
    bodyBytes += chunk.length;
  }
  const kept = Buffer.concat(chunks);
  const [, , boundary] = BOUNDARY.exec(request.headers["content-type"] ?? "") ?? [];
  if (boundary === undefined) return { kept, fields: request.headers, bodyBytes, bodyHash: hash.digest("hex") };
  const body = kept.toString("latin1").replaceAll(boundary, "BOUNDARY");
  const { "content-type": type = "", "content-length": length, ...others } = request.headers;
  const fields = { ...others, "content-type": type.replace(boundary, "BOUNDARY"), sized: length !== undefined };
  return { kept, fields, bodyBytes: body.length, bodyHash: createHash("sha256").update(body, "latin1").digest("hex") };
}

function send(response: ServerResponse, { status = 200, fields = {}, body = "" }: Reply): void {
  const isJson = typeof body === "object" && !Buffer.isBuffer(body);
  const bytes = isJson ? JSON.stringify(body) : body;
  response.writeHead(status, {
    ...(isJson && { "content-type": "application/json; charset=utf-8" }),
    ...(status !== 204 && { "content-length": Buffer.byteLength(bytes) }),
    ...fields,
  });
  response.end(bytes);
}
