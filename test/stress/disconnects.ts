import { connect as connectHttp2, constants } from "node:http2";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { below, createRandom, type Random } from "../support/random.js";
import { type ChildRelay, startChildRelay } from "./child-relay.js";
import { type GateProvider, startGateProvider } from "./gate-provider.js";
import { startLabelProvider } from "./label-provider.js";
import { textOf } from "./normal-calls.js";
import { holdsWithin } from "./poll.js";
import { held, type Row, told } from "./report.js";
import { countsOf, createRestRows, type RestRows } from "./rest-rows.js";

const MIB = 1024 * 1024;
const MAX_IN_FLIGHT = 100;
const MAX_BUFFERED_BYTES = 4 * MIB;
/** What the one large request may find missing: its own small answer is held too. */
const SLACK_BYTES = 4096;
const SETTLE_MS = 10_000;

/** Callers that go away at any moment leave nothing behind: no socket, no call in flight, no byte (threats I22). */
export async function runDisconnects(count: number, seed: number): Promise<Row[]> {
  const slow = await startLabelProvider(new Map());
  const gate = await startGateProvider(2);
  const relay = await startChildRelay({
    providers: { slow: slow.origin, gate: gate.origin },
    env: {
      RELAY_MAX_IN_FLIGHT: String(MAX_IN_FLIGHT),
      RELAY_MAX_BUFFERED_BYTES: String(MAX_BUFFERED_BYTES),
      // Nothing but the disconnect ends a call in time.
      RELAY_DEADLINE_MS: "120000",
    },
  });
  const rest = createRestRows(relay);
  try {
    const before = { rss: relay.rssMib(), sockets: relay.sockets() ?? 0 };
    await disconnectAll(relay, slow.origin, count, createRandom(seed));
    const settled = await holdsWithin(SETTLE_MS, () => (relay.sockets() ?? 0) <= before.sockets);
    const sockets = relay.sockets();
    return [
      told("callers that went away", count),
      held("sockets before → after", `${before.sockets} → ${sockets}`, settled),
      await inFlightRow(rest, gate),
      await bufferedRow(rest, gate),
      told("resident memory, MiB: before → after", `${before.rss} → ${relay.rssMib()}`),
      told("faults in the log", textOf(faultsIn(relay.log()))),
      held("the relay runs", relay.isRunning() ? "yes" : "no", relay.isRunning()),
    ];
  } finally {
    await rest.close();
    await relay.close();
    await gate.close();
    await slow.close();
  }
}

/** Fifty at a time, each in one of the five ways. */
async function disconnectAll(relay: ChildRelay, origin: string, count: number, random: Random): Promise<void> {
  const ways = [cutHttp1, cutHttp1, cutHttp2, cutGrpc, cutPassed];
  let next = 0;
  const work = async () => {
    while (next < count) {
      const way = ways[next++ % ways.length] as (typeof ways)[0];
      const payload = { marker: "m", ms: below(random, 300), size: below(random, 200_000), filling: "" };
      payload.filling = "x".repeat(below(random, 50_000));
      await way(relay, JSON.stringify({ url: `${origin}/`, method: "POST", payload }), random);
    }
  };
  await Promise.all(Array.from({ length: 50 }, work));
}

const targetOf = (relay: ChildRelay) => `/oauth/method/slow/call?user_id=u&public_key=${relay.publicKey}`;

/** Goes with a part of the request sent, while it waits, or with a part of the answer read. */
async function cutHttp1(relay: ChildRelay, body: string, random: Random): Promise<void> {
  const head = `POST ${targetOf(relay)} HTTP/1.1\r\nHost: relay.test\r\nContent-Length: ${body.length}\r\n\r\n`;
  await cutRequest(relay, head + body, random);
}

/** The same in the provider's own form, whose body is sent on while it comes. */
async function cutPassed(relay: ChildRelay, body: string, random: Random): Promise<void> {
  const { url, payload } = JSON.parse(body) as { url: string; payload: object };
  const content = JSON.stringify(payload);
  const fields = [`Host: relay.test`, `X-Relay-Public-Key: ${relay.publicKey}`, "X-Relay-User-Id: u"];
  const head = `POST /via/slow/${new URL(url).host}/ HTTP/1.1\r\n${fields.join("\r\n")}\r\n`;
  await cutRequest(relay, `${head}Content-Length: ${content.length}\r\n\r\n${content}`, random);
}

async function cutRequest(relay: ChildRelay, request: string, random: Random): Promise<void> {
  const socket = connect(relay.port, "127.0.0.1");
  socket.on("error", () => {
    // The relay may have cut it first.
  });
  const isWhole = below(random, 2) === 0;
  socket.write(isWhole ? request : request.slice(0, below(random, request.length)));
  if (below(random, 3) === 0) socket.once("data", () => socket.destroy());
  await delay(below(random, 350));
  if (below(random, 2) === 0) socket.resetAndDestroy();
  else socket.destroy();
}

async function cutHttp2(relay: ChildRelay, body: string, random: Random): Promise<void> {
  const session = connectHttp2(relay.url);
  session.on("error", () => {
    // As above.
  });
  const stream = session.request({ ":method": "POST", ":path": targetOf(relay) });
  stream.on("error", () => {
    // As above.
  });
  if (below(random, 2) === 0) stream.end(body);
  else stream.write(body.slice(0, below(random, body.length)));
  await delay(below(random, 350));
  if (below(random, 2) === 0) stream.close(constants.NGHTTP2_CANCEL);
  await delay(below(random, 5));
  session.destroy();
}

async function cutGrpc(relay: ChildRelay, body: string, random: Random): Promise<void> {
  const sessionManager = new Http2SessionManager(relay.url);
  const client = createClient(RelayService, createGrpcTransport({ baseUrl: relay.url, sessionManager }));
  const controller = new AbortController();
  const request = { providerName: "slow", userId: "u", publicKey: relay.publicKey, call: JSON.parse(body) };
  const ended = client.call(request, { signal: controller.signal }).catch(() => undefined);
  await delay(below(random, 350));
  controller.abort();
  await ended;
  sessionManager.abort();
}

/** As many calls at once as one application may have in flight: each finds room, and the next one does not. */
async function inFlightRow(rest: RestRows, gate: GateProvider): Promise<Row> {
  const places = Math.ceil((MAX_IN_FLIGHT * 8) / 9);
  const calls = Array.from({ length: places }, () => rest.call("gate", `${gate.origin}/`));
  await holdsWithin(SETTLE_MS, () => gate.waiting() >= places);
  const oneMore = await rest.call("gate", `${gate.origin}/`);
  gate.letGo();
  const counts = countsOf(await Promise.all(calls));
  const isFree = counts.get("success") === places && oneMore === "OVERLOADED";
  return held(
    `calls in flight free of the ${places} that one application gets of ${MAX_IN_FLIGHT}; one more`,
    `${textOf(counts)}; ${oneMore}`,
    isFree,
  );
}

/** A request as large as the whole budget finds room in it. */
async function bufferedRow(rest: RestRows, gate: GateProvider): Promise<Row> {
  const padTo = MAX_BUFFERED_BYTES - SLACK_BYTES;
  const call = rest.call("gate", `${gate.origin}/`, { padTo });
  await holdsWithin(SETTLE_MS, () => gate.waiting() === 1);
  gate.letGo();
  const result = await call;
  return held(`a request of all but ${SLACK_BYTES} buffered bytes`, result, result === "success");
}

/** Where they came up, with their class or code. */
function faultsIn(log: string): ReadonlyMap<string, number> {
  const faults = log.split("\n").filter((line) => line.includes('"msg":"fault"'));
  return countsOf(
    faults.map((line) => {
      const fault = JSON.parse(line) as { where: string; class: string; code?: string };
      return `${fault.where} ${fault.code ?? fault.class}`;
    }),
  );
}
