import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, type Readable } from "node:stream";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { request } from "undici";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { type ChildRelay, startChildRelay } from "./child-relay.js";
import { held, type Row } from "./report.js";

const MIB = 1024 * 1024;
/** Of memory that one transfer may add: an upload 2 MiB, and 34 where the compiling of {@link WARM_UPS_MIB} comes late. */
export const MAX_ADDED_MIB = { raw: 32, grpc: 32, via: 32, "via upload": 48 } as const;
/**
 * Until the code is compiled and the heap has found its size; a process that has just started grows by that first. After
 * some answers V8 compiles the parser of undici, a function of 33 KB of WebAssembly, once and beside the calls, for which
 * it holds 30 MiB for a second or two: small transfers begin that, and a large one takes longer.
 */
const WARM_UPS_MIB = { download: [32], upload: [...Array<number>(64).fill(1), 256] };

/** What one transfer took. */
interface Transfer {
  readonly bytes: number;
  /** The most that resident memory grew by; undefined where there is no /proc. */
  readonly addedMib: number | undefined;
}

type Chunks = AsyncIterable<Uint8Array>;

/** What moves bytes: a download over the raw route, gRPC or the pass-through, or an upload through that. */
type Way = "raw" | "grpc" | "via" | "via upload";

/** 1 GiB over each of the ways. */
export async function runStreamMemory(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const way of ["raw", "grpc", "via", "via upload"] as const) {
    const { bytes, addedMib } = await transferThroughRelay(way, 1024);
    rows.push(held(`${way}: MiB`, bytes / MIB, bytes === 1024 * MIB));
    const isSmall = addedMib === undefined || addedMib < MAX_ADDED_MIB[way];
    rows.push(held(`${way}: memory added, MiB`, addedMib ?? "not known here", isSmall));
  }
  return rows;
}

/** Moves `mib` MiB through a relay in a process of its own, and watches that process's memory. */
export async function transferThroughRelay(way: Way, mib: number): Promise<Transfer> {
  const provider = await startLargeProvider();
  const relay = await startChildRelay({ providers: { large: provider.origin } });
  try {
    const open = OPEN[way];
    const warmUps = way === "via upload" ? WARM_UPS_MIB.upload : WARM_UPS_MIB.download;
    for (const warmUp of warmUps) for await (const _ of await open(relay, `${provider.origin}/${warmUp}`));
    const before = relay.rssMib();
    let bytes = 0;
    let most = before ?? 0;
    let sampledAt = 0;
    for await (const chunk of await open(relay, `${provider.origin}/${mib}`)) {
      bytes += chunk.length;
      if (bytes < sampledAt) continue;
      sampledAt = bytes + MIB;
      most = Math.max(most, relay.rssMib() ?? 0);
    }
    return { bytes, addedMib: before === undefined ? undefined : most - before };
  } finally {
    await relay.close();
    await provider.close();
  }
}

const OPEN: Readonly<Record<Way, (relay: ChildRelay, url: string) => Chunks | Promise<Chunks>>> = {
  raw: openRaw,
  grpc: openGrpc,
  via: async (relay, url) => (await requestVia(relay, url, null)).body,
  "via upload": upload,
};

function requestVia(relay: ChildRelay, url: string, body: Readable | null) {
  const target = `${relay.url}/via/large/${url.slice("http://".length)}`;
  const headers = { "x-relay-public-key": relay.publicKey, "x-relay-user-id": "u" };
  return request(target, { method: body === null ? "GET" : "POST", headers, body });
}

/** Gives each piece when it was taken, and fails unless the provider has got all of them. */
async function* upload(relay: ChildRelay, url: string): Chunks {
  const mib = Number(new URL(url).pathname.slice(1));
  const body = new PassThrough({ highWaterMark: MIB });
  const answered = requestVia(relay, url, body).then(async (answer) => Number(await answer.body.text()));
  for (let left = mib; left > 0; left--) {
    if (!body.write(PIECE)) await once(body, "drain");
    yield PIECE;
  }
  body.end();
  if ((await answered) !== mib * MIB) throw new Error("the provider has not got all of it");
}

async function openRaw(relay: ChildRelay, url: string): Promise<Chunks> {
  const target = `${relay.url}/oauth/method/large/stream?user_id=u&public_key=${relay.publicKey}`;
  return (await request(target, { method: "POST", body: JSON.stringify({ url, method: "GET" }) })).body;
}

async function* openGrpc(relay: ChildRelay, url: string): Chunks {
  const client = createClient(RelayService, createGrpcTransport({ baseUrl: relay.url }));
  const call = { url, method: "GET" };
  for await (const { part } of client.callStream({
    providerName: "large",
    userId: "u",
    publicKey: relay.publicKey,
    call,
  })) {
    if (part.case === "row") throw new Error(part.value.errorType);
    if (part.case === "chunk") yield part.value;
  }
}

const PIECE = Buffer.alloc(MIB, "0123456789abcdef");

/** Answers `/N` with N MiB, as fast as they are taken, and a POST with the number of its bytes. */
async function startLargeProvider(): Promise<{ origin: string; close: () => Promise<void> }> {
  const server = createServer((incoming, response) => {
    if (incoming.method === "POST") {
      let bytes = 0;
      incoming.on("data", (chunk) => {
        bytes += chunk.length;
      });
      incoming.on("end", () => response.end(String(bytes)));
      return;
    }
    let left = Number(incoming.url?.slice(1));
    response.writeHead(200, { "content-length": left * MIB });
    const more = () => {
      while (left > 0) {
        left -= 1;
        if (!response.write(PIECE)) return;
      }
      response.end();
    };
    response.on("drain", more);
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
