import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { request } from "undici";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { type ChildRelay, startChildRelay } from "./child-relay.js";
import { held, type Row } from "./report.js";

const MIB = 1024 * 1024;
/** Of memory that one download may add. */
export const MAX_ADDED_MIB = 32;
/** Until the code is compiled and the heap has found its size; a process that has just started grows by that first. */
const WARM_UP_MIB = 32;

/** What one download took. */
export interface Download {
  readonly bytes: number;
  /** The most that resident memory grew by; undefined where there is no /proc. */
  readonly addedMib: number | undefined;
}

type Chunks = AsyncIterable<Uint8Array>;

/** A 1 GiB download over the raw route and over gRPC. */
export async function runStreamMemory(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const surface of ["raw", "grpc"] as const) {
    const { bytes, addedMib } = await downloadThroughRelay(surface, 1024);
    rows.push(held(`${surface}: MiB downloaded`, bytes / MIB, bytes === 1024 * MIB));
    const isSmall = addedMib === undefined || addedMib < MAX_ADDED_MIB;
    rows.push(held(`${surface}: memory added, MiB`, addedMib ?? "not known here", isSmall));
  }
  return rows;
}

/** Downloads `mib` MiB through a relay in a process of its own, and watches that process's memory. */
export async function downloadThroughRelay(surface: "raw" | "grpc", mib: number): Promise<Download> {
  const provider = await startLargeProvider();
  const relay = await startChildRelay({ providers: { large: provider.origin } });
  try {
    const open = surface === "raw" ? openRaw : openGrpc;
    for await (const _ of await open(relay, `${provider.origin}/${WARM_UP_MIB}`));
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

/** Answers `/N` with N MiB, as fast as they are taken. */
async function startLargeProvider(): Promise<{ origin: string; close: () => Promise<void> }> {
  const piece = Buffer.alloc(MIB, "0123456789abcdef");
  const server = createServer((incoming, response) => {
    let left = Number(incoming.url?.slice(1));
    response.writeHead(200, { "content-length": left * MIB });
    const more = () => {
      while (left > 0) {
        left -= 1;
        if (!response.write(piece)) return;
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
