import { type Bytes, type Chunks, createChunks } from "../lib/chunks.js";
import {
  type ConnectorOptions,
  createConnector,
  createResolver,
  createTrust,
  type Resolve,
  type SelfAddress,
} from "./connector.js";
import { type ContentCoding, decodeBody, parseContentCodings } from "./decode.js";
import { type AnswerFields, type AnswerLimits, Exchange, isChunkedOrNone } from "./exchange.js";
import { relayError } from "./failure.js";
import { Pool, type PoolOptions } from "./pool.js";
import { ReadPace } from "./pooled-socket.js";
import { ORIGIN_LIMITS, type Upstream, type UpstreamAnswer, type UpstreamRequest } from "./request.js";
import { StreamedExchange } from "./streamed-exchange.js";

/** How the relay calls providers. */
export interface UpstreamOptions {
  /** Whether 127.0.0.0/8 and ::1 may be dialled, with http, too: development and tests only. */
  readonly allowLoopback: boolean;
  /**
   * Who may share a kept-alive socket: every call to an origin; only calls of the same stored connection; nobody.
   * Default `origin`: handshakes are the dearest part of a call.
   */
  readonly reuse?: "origin" | "connection" | "never";
  /**
   * How long nothing must have come on a kept socket before it carries another call, in milliseconds. Default 10: stray
   * answers of real servers are 1 to 5 ms late. Of 32 callers at once, a call takes 45 µs of this process without a rest,
   * 61 with one of 10 ms and 66 to 73 with one of 20: more sockets are in use, whose memory is in no cache.
   */
  readonly quietMs?: number;
  /**
   * How long no socket to an origin is reused after it sent what nobody asked for, in milliseconds. Default ten minutes:
   * a server that does so once does so again.
   */
  readonly distrustMs?: number;
  /** Called with an origin that did. */
  readonly onStray?: (origin: string) => void;
  /** DNS, TCP and TLS of a new socket, in milliseconds. Default 5,000: a healthy provider needs far less. */
  readonly connectTimeoutMs?: number;
  /** Resolving one name, in milliseconds. Default 3,000, so that a connect attempt is left within the connect timeout. */
  readonly dnsTimeoutMs?: number;
  /**
   * How long an idle socket is kept, in milliseconds. Default 60,000: a person who reads in between meets it again. Less
   * where the provider says so, or was seen to close one earlier.
   */
  readonly keepAliveTimeoutMs?: number;
  /** Body octets of an answer, before and after decoding. Default 10 MiB, as RELAY_MAX_RESPONSE_BYTES. */
  readonly maxResponseBytes?: number;
  /** Header octets of an answer. Default 16 KiB, as Node.js. */
  readonly maxHeaderBytes?: number;
  /** Header lines of an answer. Default 100. */
  readonly maxHeaderCount?: number;
  /** Interim (1xx) answers to one request. Default 16. */
  readonly maxInformational?: number;
  /** Calls at once to one origin; more wait in order of arrival. Default as RELAY_MAX_ORIGIN_CALLS. */
  readonly maxConcurrent?: number;
  /** Calls that may wait for their turn at one origin. Default as RELAY_MAX_ORIGIN_WAITING. */
  readonly maxWaiting?: number;
  /**
   * Without a byte of a streamed answer while one is wanted, in milliseconds. Default 120,000: event streams send a
   * comment every 15 to 30 s, and slow models think for a minute.
   */
  readonly streamIdleTimeoutMs?: number;
  /** A streamed answer all in all, in milliseconds. Default one day: longer ones can be asked for again. */
  readonly streamTimeoutMs?: number;
  /** Origins whose sockets are kept; the one used longest ago makes room. Default 1,024. */
  readonly maxPools?: number;
  /** Finds addresses of a name. Default: DNS, as `createResolver` says. */
  readonly resolve?: Resolve;
  /** PEM certificates that are trusted besides the usual roots. */
  readonly ca?: string | Buffer;
  /** Where this process listens: never dialled. */
  readonly selfAddresses?: () => readonly SelfAddress[];
}

interface Settings extends ConnectorOptions, AnswerLimits, Omit<PoolOptions, "connect"> {
  readonly sharesByConnection: boolean;
  readonly maxPools: number;
}

/** Creates the only way out to providers. */
export function createUpstream(options: UpstreamOptions): Upstream {
  const settings = settingsFrom(options);
  const pools = new Map<string, Pool>();
  const closing = new Set<Promise<void>>();
  /** The last entry of `pools`, which stand in the order of their use. */
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

function settingsFrom(options: UpstreamOptions): Settings {
  const dnsTimeoutMs = options.dnsTimeoutMs ?? 3000;
  const reuse = options.reuse ?? "origin";
  return {
    allowLoopback: options.allowLoopback,
    selfAddresses: options.selfAddresses ?? (() => []),
    resolve: options.resolve ?? createResolver(dnsTimeoutMs),
    secureContext: createTrust(options.ca),
    dnsTimeoutMs,
    quietMs: options.quietMs ?? 10,
    distrustMs: options.distrustMs ?? 600_000,
    onStray: options.onStray ?? (() => {}),
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    keepAliveTimeoutMs: options.keepAliveTimeoutMs ?? 60_000,
    maxResponseBytes: options.maxResponseBytes ?? 10 * 1024 * 1024,
    maxHeaderBytes: options.maxHeaderBytes ?? 16 * 1024,
    maxHeaderCount: options.maxHeaderCount ?? 100,
    maxInformational: options.maxInformational ?? 16,
    maxConcurrent: options.maxConcurrent ?? ORIGIN_LIMITS.maxConcurrent,
    maxWaiting: options.maxWaiting ?? ORIGIN_LIMITS.maxWaiting,
    maxPools: options.maxPools ?? 1024,
    streamIdleTimeoutMs: options.streamIdleTimeoutMs ?? 120_000,
    streamTimeoutMs: options.streamTimeoutMs ?? 86_400_000,
    once: reuse === "never",
    pace: new ReadPace(),
    sharesByConnection: reuse === "connection",
  };
}

function createPool({ origin, allowPrivateNetwork }: UpstreamRequest, settings: Settings): Pool {
  const { protocol, port } = new URL(origin);
  const target = { protocol, port: Number(port) || (protocol === "https:" ? 443 : 80), allowPrivateNetwork };
  return new Pool(origin, { ...settings, connect: createConnector(settings, target) });
}

/** The pool used longest ago that has nothing to do; the oldest one when all are busy, which then ends with its calls. */
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

/** A body is held as it came and once more in the answer made of it. */
const COPIES = 2;
/** Deflate makes at most 1,032 bytes of one; whatever makes more is decoded under the limit all the same. */
const MAX_EXPANSION = 1100;

/** A request whose answer is read to its end before it is handed over. */
export class WholeExchange extends Exchange<UpstreamAnswer> {
  readonly isStream = false;
  #statusCode = 0;
  #fields: AnswerFields | undefined;
  #size = 0;
  readonly #chunks: Chunks = createChunks();

  protected onHead(statusCode: number, fields: AnswerFields): boolean {
    this.#statusCode = statusCode;
    this.#fields = fields;
    // A 304 has no body, but may tell the length of the one it stands for, which undici takes for a mismatch.
    if (statusCode === 304 && fields.contentLength > 0) return this.finish(false);
    if (this.request.method === "HEAD") return true;
    if (fields.contentLength > this.answerLimits.maxResponseBytes) return this.failAs("tooLarge");
    return isChunkedOrNone(fields.transferEncoding) || this.failAs("coding");
  }

  onData(chunk: Buffer): boolean {
    if (this.isOver) return true;
    this.#size += chunk.length;
    if (this.#size > this.answerLimits.maxResponseBytes) return this.failAs("tooLarge");
    if (this.memory?.reserve(COPIES * chunk.length) === false) return this.failAs("noMemory");
    this.#chunks.push(chunk);
    return true;
  }

  /** The socket is free also while the body is being decoded. */
  protected finish(isSocketClean: boolean): true {
    this.pool.remove(this, isSocketClean);
    const encoding = this.#fields?.contentEncoding;
    const codings = encoding === undefined || this.#chunks.length === 0 ? [] : parseContentCodings(encoding);
    if (codings === undefined) return this.failAs("coding");
    if (codings.length === 0) this.#give(this.#chunks);
    else this.#decode(this.#chunks, codings);
    return true;
  }

  #decode(body: Bytes, codings: readonly ContentCoding[]): void {
    const { maxResponseBytes } = this.answerLimits;
    const most = COPIES * Math.min(maxResponseBytes, body.length * MAX_EXPANSION ** codings.length);
    if (this.memory?.reserve(most) === false) {
      this.failAs("noMemory");
      return;
    }
    decodeBody(body, codings, maxResponseBytes, this.memory).then(
      (decoded) => {
        this.memory?.giveBack(most - COPIES * decoded.length);
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
