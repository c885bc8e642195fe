import { type Bytes, type Chunks, createChunks } from "../lib/chunks.js";
import { createConnector, createResolver, createTrust, type Resolve, type SelfAddress } from "./connector.js";
import { type ContentCoding, decodeBody, parseContentCodings } from "./decode.js";
import { type AnswerFields, Exchange } from "./exchange.js";
import { relayError } from "./failure.js";
import { Pool } from "./pool.js";
import { KeptSockets, ReadPace } from "./pooled-socket.js";
import { CALL_LIMITS, type CallLimits, type Upstream, type UpstreamAnswer, type UpstreamRequest } from "./request.js";
import { StreamedExchange } from "./streamed-exchange.js";

/** How the relay calls providers. */
export interface UpstreamOptions extends Partial<CallLimits> {
  /** Whether 127.0.0.0/8 and ::1 may be dialled, even with http: development and tests only. */
  readonly allowLoopback: boolean;
  /**
   * Which calls may share a kept-alive socket: all to one origin, only those of one stored connection, or none. Default
   * `origin`: handshakes are the most expensive part of a call.
   */
  readonly reuse?: "origin" | "connection" | "never";
  /** Called with the origin of a stray answer. */
  readonly onStray?: (origin: string) => void;
  /** Resolves a host name. Default: DNS, see `createResolver`. */
  readonly resolve?: Resolve;
  /** PEM certificates to trust in addition to the usual roots. */
  readonly ca?: string | Buffer;
  /** The addresses that this process listens on; never dialled. */
  readonly selfAddresses?: () => readonly SelfAddress[];
}

type Settings = ReturnType<typeof settingsFrom>;

/** Creates the HTTP client for providers: the only code that connects to them. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const settings = settingsFrom(options);
  const pools = new Map<string, Pool>();
  const closing = new Set<Promise<void>>();
  /** Key of the last entry of `pools`, which is in order of use. */
  let newest: string | undefined;
  let isClosed = false;

  function closePool(key: string, pool: Pool): void {
    pools.delete(key);
    const closed: Promise<void> = pool.close().finally(() => closing.delete(closed));
    closing.add(closed);
  }

  function poolFor(request: UpstreamRequest): Pool {
    const key = request.allowPrivateNetwork ? `private ${request.origin}` : request.origin;
    const known = pools.get(key);
    if (known !== undefined && key === newest) return known;
    newest = key;
    if (known !== undefined) pools.delete(key);
    else if (pools.size >= settings.maxPools) evict(pools, closePool);
    const pool = known ?? createPool(request, settings);
    pools.set(key, pool);
    return pool;
  }

  const shareOf = ({ connectionId }: UpstreamRequest) => (settings.sharesByConnection ? connectionId : "");

  return {
    send(request, limits, progress) {
      if (isClosed) return Promise.reject(relayError("closed"));
      return new WholeExchange(request, shareOf(request), poolFor(request), settings).start(limits, progress);
    },
    stream(request, limits, progress) {
      if (isClosed) return Promise.reject(relayError("closed"));
      return new StreamedExchange(request, shareOf(request), poolFor(request), settings).start(limits, progress);
    },
    async close() {
      isClosed = true;
      for (const [key, pool] of pools) closePool(key, pool);
      await Promise.all(closing);
    },
  };
}

function settingsFrom({ reuse, ca, ...options }: UpstreamOptions) {
  const limits = { ...CALL_LIMITS, ...options };
  return {
    selfAddresses: () => [],
    resolve: createResolver(limits.dnsTimeoutMs),
    onStray: () => {},
    ...limits,
    secureContext: createTrust(ca),
    once: reuse === "never",
    pace: new ReadPace(),
    kept: new KeptSockets(limits.maxKept),
    sharesByConnection: reuse === "connection",
  };
}

function createPool({ origin, allowPrivateNetwork }: UpstreamRequest, settings: Settings): Pool {
  const { protocol, port } = new URL(origin);
  const target = { protocol, port: Number(port) || (protocol === "https:" ? 443 : 80), allowPrivateNetwork };
  return new Pool(origin, { ...settings, connect: createConnector(settings, target) });
}

/**
 * Closes the least recently used idle pool; if all are busy, the least recently used one, which ends with its calls.
 */
function evict(pools: ReadonlyMap<string, Pool>, close: (key: string, pool: Pool) => void): void {
  let chosen: [string, Pool] | undefined;
  for (const entry of pools) {
    chosen ??= entry;
    if (!entry[1].isIdle) continue;
    chosen = entry;
    break;
  }
  if (chosen !== undefined) close(...chosen);
}

/** A body is held twice: as received, and in the answer made from it. */
const COPIES = 2;

/** A request whose answer is passed on once it is complete. */
export class WholeExchange extends Exchange<UpstreamAnswer> {
  readonly isStream = false;
  #statusCode = 0;
  #fields: AnswerFields | undefined;
  #size = 0;
  readonly #chunks: Chunks = createChunks();

  protected onHead(statusCode: number, fields: AnswerFields, hasBody: boolean): void {
    this.#statusCode = statusCode;
    this.#fields = fields;
    if (hasBody && fields.contentLength > this.answerLimits.maxResponseBytes) this.failAs("tooLarge");
  }

  onData(chunk: Buffer): boolean {
    if (this.isOver) return true;
    this.#size += chunk.length;
    if (this.#size > this.answerLimits.maxResponseBytes) return this.failAs("tooLarge");
    if (this.memory?.reserve(COPIES * chunk.length) === false) return this.failAs("noMemory");
    this.#chunks.push(chunk);
    return true;
  }

  /** Frees the socket before the body is decoded. */
  protected finish(isSocketClean: boolean): true {
    this.pool.remove(this, isSocketClean);
    const encoding = this.#fields?.contentEncoding;
    const codings = encoding === undefined || this.#chunks.length === 0 ? [] : parseContentCodings(encoding);
    if (codings === undefined) return this.failAs("coding");
    if (codings.length === 0) this.#give(this.#chunks);
    else this.#decode(this.#chunks, codings);
    return true;
  }

  /** Charges what has been decoded as it grows: a coding may expand a few bytes without limit. */
  #decode(body: Bytes, codings: readonly ContentCoding[]): void {
    let charged = 0;
    const mayGrowTo = (length: number) => {
      const more = COPIES * length - charged;
      if (this.isOver || (more > 0 && this.memory?.reserve(more) === false)) return false;
      if (more > 0) charged += more;
      return true;
    };
    decodeBody(body, codings, this.answerLimits.maxResponseBytes, mayGrowTo, this.memory).then(
      (decoded) => {
        this.memory?.giveBack(charged - COPIES * decoded.length);
        this.#give(decoded);
      },
      (error: unknown) => this.fail(error),
    );
  }

  #give(body: Bytes): void {
    const [statusCode, fields] = [this.#statusCode, this.#fields];
    const isPossiblyTruncated = fields !== undefined && this.isOpenEnded(statusCode, fields, this.#chunks.length === 0);
    this.succeed({ statusCode, rawHeaders: fields?.lines ?? [], isPossiblyTruncated, body });
    this.end();
  }
}
