import { createSocket } from "node:dgram";
import { once } from "node:events";

/** Records of one name, or how its query goes wrong. */
export type Zone =
  | {
      readonly a?: readonly string[];
      readonly aaaa?: readonly string[];
      readonly cname?: string;
      readonly failing?: "AAAA";
      readonly ttl?: number;
    }
  | "silence"
  | "SERVFAIL";

/** A DNS server on loopback that knows only what a test tells it; other names do not exist (RFC 1035). */
export interface FakeDns {
  /** `address:port`, as `Resolver.setServers` wants it. */
  readonly server: string;
  /** Names that were asked for, one entry per query. */
  readonly queries: readonly string[];
  close(): Promise<void>;
}

const TYPE_A = 1;
const TYPE_CNAME = 5;
const TYPE_AAAA = 28;

/** Starts the server. */
export async function startFakeDns(zones: Readonly<Record<string, Zone>>): Promise<FakeDns> {
  const socket = createSocket("udp4");
  const queries: string[] = [];
  socket.on("message", (query, peer) => {
    const { name, type } = questionOf(query);
    queries.push(name);
    const zone = zones[name];
    if (zone !== "silence") socket.send(replyTo(query, type, zone), peer.port, peer.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    server: `127.0.0.1:${socket.address().port}`,
    queries,
    async close() {
      socket.close();
      await once(socket, "close");
    },
  };
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join("."), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function replyTo(query: Buffer, type: number, zone: Exclude<Zone, "silence"> | undefined): Buffer {
  const records = zone === undefined || isFailing(type, zone) ? [] : recordsOf(type, zone as Exclude<Zone, string>);
  const code = zone === undefined ? 3 : isFailing(type, zone) ? 2 : 0;
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, query.subarray(12, questionOf(query).end), ...records]);
}

function isFailing(type: number, zone: Zone): boolean {
  return zone === "SERVFAIL" || (zone !== "silence" && zone.failing === "AAAA" && type === TYPE_AAAA);
}

function recordsOf(type: number, zone: Exclude<Zone, string>): Buffer[] {
  const { a = [], aaaa = [], cname, ttl = 0 } = zone;
  if (cname !== undefined) return [record(TYPE_CNAME, ttl, nameOf(cname))];
  if (type === TYPE_A) return a.map((ip) => record(TYPE_A, ttl, Buffer.from(ip.split(".").map(Number))));
  return aaaa.map((hex) => record(TYPE_AAAA, ttl, Buffer.from(hex, "hex")));
}

function record(type: number, ttl: number, data: Buffer): Buffer {
  const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function nameOf(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}
