import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { createAuthority } from "../support/certificates.js";
import { DOCUMENT, installedVersions, REWRITE, withSdks } from "../support/sdks-table.js";
import { divert } from "./network.mjs";
import { type RelayProcess, startRelay } from "./relay.js";
import type { Sdk, SdkAccount } from "./sdk.js";
import { type Received, type StandIn, startStandIn } from "./stand-in.js";

/** Longer than any SDK waits before it tries again; ends what hangs. */
const MAX_RUN_MS = 120_000;
/** What the relay decides itself, on purpose: its own connection and content codings (docs/pass-through.md). */
const OF_THE_WAY = ["connection", "accept-encoding", "sec-fetch-mode"];
/** The credential's scheme is the definition's; Octokit chooses its own by the form of the token. */
const SCHEME = /^(?:Bearer|token) /i;

/** What the relay sends where a caller says nothing. */
const FILLED_IN = { accept: "*/*", "user-agent": "provider-call-relay" };

/** What came of an SDK's work, and how it got there. */
interface Work {
  readonly results: unknown;
  readonly received: readonly Received[];
  readonly problems: readonly string[];
}

/**
 * Runs official SDKs against stand-ins of their providers, once directly and once through a relay, and compares what came
 * back and what the providers got. `npm run sdks -- [--only NAME]…`; exit code 1 on any difference.
 */
async function main(): Promise<number> {
  const { values } = parseArgs({ options: { only: { type: "string", multiple: true } } });
  silenceSdks();
  const authority = createAuthority("sdks");
  const standIn = await startStandIn(authority);
  const relay = await startRelay(authority, standIn.ports.relay);
  divert((host) => relay.ports.get(host) ?? standIn.ports.sdk, authority.ca);
  let [passed, failed] = [0, 0];
  try {
    for (const sdk of await loadSdks(values.only)) {
      const { line, problems } = await tryOut(sdk, standIn, relay);
      process.stdout.write(`${[line, ...problems].join("\n    ")}\n`);
      if (problems.length === 0) passed++;
      else failed++;
    }
  } finally {
    await relay.close();
    standIn.close();
  }
  const document = readFileSync(DOCUMENT, "utf8");
  if (document !== withSdks(document)) {
    process.stdout.write(`${DOCUMENT} shows other lines of code than were run: ${REWRITE}\n`);
    failed++;
  }
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

/** Some tell of each request that fails. */
function silenceSdks(): void {
  for (const level of ["debug", "info", "log", "warn", "error"] as const) console[level] = () => {};
}

async function loadSdks(only: readonly string[] | undefined): Promise<ReadonlyArray<Sdk<unknown>>> {
  const files = readdirSync(new URL("clients", import.meta.url)).sort();
  const chosen = files.filter((file) => only === undefined || only.includes(file.replace(/\.ts$/, "")));
  return Promise.all(chosen.map(async (file) => (await import(`./clients/${file}`)).sdk as Sdk<unknown>));
}

async function tryOut(sdk: Sdk<unknown>, standIn: StandIn, relay: RelayProcess) {
  const token = `provider-token-${randomBytes(24).toString("base64url")}`;
  const direct = await perform(sdk, standIn, token, accountWithout(token));
  const account = await relay.connect(sdk.provider, token, sdk.originParameters);
  const through = await perform(sdk, standIn, token, account);
  const asked = [...standIn.askedBySdk].sort();
  const problems = [
    ...direct.problems.map((text) => `directly: ${text}`),
    ...through.problems.map((text) => `through the relay: ${text}`),
    ...(isDeepStrictEqual(asked, [...(sdk.around ?? [])].sort()) ? [] : [`asked past the relay: ${asked.join(", ")}`]),
    ...difference("results", direct.results, through.results),
    ...difference("requests", direct.received.map(comparable(sdk)), through.received.map(comparable(sdk))),
  ];
  const counts = `${direct.received.length} directly, ${through.received.length} through the relay`;
  const name = `${sdk.package} ${installedVersions().get(sdk.package)}`;
  return { line: `${name.padEnd(42)} ${counts.padEnd(36)} ${problems.length === 0 ? "equal" : "NOT EQUAL"}`, problems };
}

/** The same without a relay: the provider's own addresses and token. */
function accountWithout(token: string): SdkAccount {
  return {
    via: (host) => `https://${host}`,
    token: async () => token,
    async fetch(input, init) {
      const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
      headers.set("authorization", `Bearer ${token}`);
      return fetch(input, { ...init, headers });
    },
  };
}

async function perform(sdk: Sdk<unknown>, standIn: StandIn, token: string, account: SdkAccount): Promise<Work> {
  standIn.begin(sdk.routes(), token);
  let results: unknown;
  const problems: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("it has not ended")), MAX_RUN_MS);
  });
  try {
    const work = (async () => sdk.work(await sdk.connect(account)))();
    const done = await Promise.race([work, timeout]);
    for (const [task, result] of Object.entries(done)) if (result === undefined) problems.push(`${task}: no result`);
    results = JSON.parse(JSON.stringify(done));
  } catch (error) {
    problems.push(error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error));
  } finally {
    clearTimeout(timer);
  }
  return { results, received: standIn.received, problems: [...standIn.faults, ...problems] };
}

/** A request without what may differ; of fields that are random or a time, only that they are there. */
function comparable({ varying = [] }: Sdk<unknown>) {
  return (request: Received) => {
    const fields = Object.entries({ ...FILLED_IN, ...request.fields })
      .filter(([name]) => !OF_THE_WAY.includes(name))
      .map(([name, value]) => [name, varying.includes(name) ? "…" : String(value).replace(SCHEME, "")] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1));
    return { ...request, fields: Object.fromEntries(fields) };
  };
}

/** The first place where two values differ, as text. */
function difference(place: string, one: unknown, other: unknown): string[] {
  if (isDeepStrictEqual(one, other)) return [];
  if (isObject(one) && isObject(other)) {
    const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
    return names.flatMap((name) => difference(`${place}.${name}`, one[name], other[name]));
  }
  return [`${place}: ${JSON.stringify(one)} directly, ${JSON.stringify(other)} through the relay`];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

process.exitCode = await main();
