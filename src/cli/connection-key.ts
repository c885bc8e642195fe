import type { Application } from "../applications/application.js";
import type { Config } from "../config/config.js";
import type { Connection, ConnectionKey, RefreshAttempt } from "../oauth/connection.js";
import type { DisconnectOptions } from "../oauth/disconnect.js";
import { toldStateOf } from "../oauth/refreshable.js";
import type { Refresher } from "../oauth/refresher.js";
import { parseValues, type ValueClass } from "../providers/connection-value.js";
import type { Provider } from "../providers/provider.js";
import type { SelfAddress } from "../upstream/connector.js";
import { applicationOf } from "./application.js";
import { cleaningUp, failure, textFields, textTable, usageError, writeNote } from "./command.js";
import { loadCatalog, type OpenStore } from "./open-store.js";

/** Options that name one connection. */
export interface ConnectionOptions {
  readonly app: string;
  readonly user: string;
  readonly provider: string;
  readonly json?: boolean;
}

/**
 * Finds what the options name. A provider that is no longer in the catalogue is accepted as written, so that its
 * connections can still be seen and deleted.
 */
export async function connectionKeyFrom(
  open: OpenStore,
  options: ConnectionOptions,
): Promise<ConnectionKey & { readonly application: Application }> {
  const application = await applicationOf(open.store, options.app);
  const provider = (await loadCatalog(open.config)).find(options.provider);
  const providerName = provider?.name ?? options.provider;
  return { application, applicationId: application.id, userId: options.user, providerName };
}

/** The error for a missing connection. */
export function noConnection(): Error {
  return failure("This user has no connection at this provider. 'relay connection list' lists them.");
}

/** A connection as JSON. An allow-list of members, so that a token can never be among them. */
export function jsonFromConnection(connection: Connection) {
  const { state, reason, expiresAt } = toldStateOf(connection, Date.now());
  return {
    user: connection.userId,
    provider: connection.providerName,
    state,
    stateReason: reason ?? null,
    failedRefreshes: connection.failCount,
    lastFailedAt: timeFrom(connection.lastFailedAt),
    lastFailure: connection.lastErrorClass ?? null,
    nextTryAt: timeFrom(connection.nextTryAt),
    failingSince: timeFrom(connection.failCount > 0 ? connection.trouble?.since : undefined),
    tokenRefusedSince: timeFrom(connection.refreshToken === undefined ? connection.trouble?.since : undefined),
    expiresAt: timeFrom(expiresAt),
    hasRefreshToken: connection.refreshToken !== undefined,
    scope: connection.scope,
    tokenType: connection.tokenType,
    originParameters: connection.originParameters,
    version: connection.version,
    createdAt: timeFrom(connection.createdAt),
    updatedAt: timeFrom(connection.updatedAt),
  };
}

/** A connection as text. */
export function textFromConnection(connection: Connection): string {
  const { user, provider, state, stateReason, expiresAt, scope, originParameters, updatedAt } =
    jsonFromConnection(connection);
  const parameters = Object.entries(originParameters).map(([name, value]) => `${name}=${value}`);
  return textFields([
    ["user", user],
    ["provider", provider],
    ["state", stateReason === null ? state : `${state} (${stateReason})`],
    ...troubleFields(connection),
    ["token expires", expiresAt ?? "unknown"],
    ["can be refreshed", connection.refreshToken === undefined || state !== "ACTIVE" ? "no" : "yes"],
    ["scope", scope || "unknown"],
    ...(parameters.length > 0 ? [["parameters", parameters.join(", ")] as const] : []),
    ["updated", updatedAt ?? ""],
  ]);
}

/** Since when refreshes fail, the last failure and the next attempt; or since when the token is refused. */
function troubleFields(connection: Connection): ReadonlyArray<readonly [string, string]> {
  const { trouble, lastErrorClass, lastFailedAt, nextTryAt, failCount, refreshToken } = connection;
  if (trouble !== undefined && refreshToken === undefined)
    return [["token refused since", timeFrom(trouble.since) ?? ""]];
  if (failCount === 0) return [];
  const since = timeFrom(trouble?.since ?? lastFailedAt) ?? "";
  const last = `${lastErrorClass ?? "unknown"} at ${timeFrom(lastFailedAt) ?? ""}, failures: ${failCount}`;
  return [
    ["refresh failing since", since],
    ["last answer", last],
    ...(nextTryAt === undefined ? [] : [["next try", `at the first call after ${timeFrom(nextTryAt)}`] as const]),
  ];
}

/** A refresh as JSON. */
export function jsonFromAttempt({ at, outcome, cause, answer, durationMs }: RefreshAttempt) {
  return { endedAt: timeFrom(at) ?? "", outcome, cause, answer: answer || null, durationMs };
}

/** The last refreshes as text; empty if there were none. */
export function textFromAttempts(attempts: ReadonlyArray<ReturnType<typeof jsonFromAttempt>>): string[] {
  if (attempts.length === 0) return [];
  const rows = attempts.map(({ endedAt, outcome, cause, answer, durationMs }) => [
    ...[endedAt, outcome, cause, answer ?? "token", `${durationMs} ms`],
  ]);
  return ["", textTable(["REFRESH ENDED", "OUTCOME", "CAUSE", "ANSWER", "TOOK"], rows)];
}

function timeFrom(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}

/** Parses all `--param name=value`. Throws a usage error that names the parameter. */
export function originParametersFrom(
  given: readonly string[],
  provider: Provider,
  which: ValueClass,
): Readonly<Record<string, string>> {
  const parsed = parseValues(parsePairs("--param", given), provider, which, true);
  if ("values" in parsed) return parsed.values;
  throw usageError(`--param ${parsed.parameter}: ${parsed.problem}.`);
}

/** Parses all `name=value` of an option. Throws a usage error that names the parameter. */
export function parsePairs(option: string, given: readonly string[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const pair of given) {
    const equals = pair.indexOf("=");
    if (equals < 1) throw usageError(`${option} must be name=value, such as subdomain=acme.`);
    const name = pair.slice(0, equals);
    if (values.has(name)) throw usageError(`${option} ${name} is given twice; give it once.`);
    values.set(name, pair.slice(equals + 1));
  }
  return values;
}

/** Calls `use` with what disconnecting requires, including an HTTP client for providers that is closed afterwards. */
export async function withWayOut<Result>(
  { config, store, sealer }: OpenStore,
  use: (options: DisconnectOptions) => Promise<Result>,
): Promise<Result> {
  const [{ createTokenEndpoint, MAX_TOKEN_ANSWER_BYTES }, { createUpstream }] = await Promise.all([
    import("../oauth/token-endpoint.js"),
    import("../upstream/client.js"),
  ]);
  const { connectTimeoutMs, upstreamReuse: reuse, upstreamQuietMs: quietMs, allowLoopback } = config;
  const selfAddresses = () => selfAddressesFrom(config);
  const limits = { connectTimeoutMs, maxResponseBytes: MAX_TOKEN_ANSWER_BYTES };
  const upstream = createUpstream({ ...limits, reuse, quietMs, allowLoopback, selfAddresses });
  try {
    return await use({
      catalog: await loadCatalog(config),
      connections: store.connections,
      oauthClients: store.oauthClients,
      sealer,
      send: createTokenEndpoint(upstream),
      now: Date.now,
      // The command prints the result itself.
      onEvent: () => {},
      onFault: () => {},
    });
  } finally {
    await upstream.close();
  }
}

/**
 * Time for the answer of a token endpoint after a signal, as the service gives: the command would lose the next refresh
 * token if it ended before.
 */
const GRACE_MS = 10_000;

const WAITING =
  "Waiting up to 10 s for the provider's answer, which may hold the next refresh token. A second signal ends the command at once.";

/** Calls `use` with a refresher that works like the service's, with its own proof that it holds the lease. */
export async function withRefresher<Result>(
  open: OpenStore,
  use: (refresher: Pick<Refresher, "refresh">) => Promise<Result>,
): Promise<Result> {
  const [{ createRefresher }, { createPlaceFor, createTargetFor }, { createBreaker, createClientHolds }, spools] =
    await Promise.all([
      import("../oauth/refresher.js"),
      import("../oauth/authorization-server.js"),
      import("../oauth/breaker.js"),
      import("../store/spool.js"),
    ]);
  const { config, store } = open;
  return withWayOut(open, async (options) => {
    const spool = spools.openSpool({ ...spools.spoolPlaceOf(config, store.id), onFault: () => {}, onLeft: () => {} });
    const refresher = createRefresher({
      ...options,
      connections: store.connections,
      ...{ spool, breaker: createBreaker(), clients: createClientHolds(), requestTimeoutMs: config.refreshTimeoutMs },
      ...{ noteClientRefused: store.oauthClients.noteRefused, random: Math.random },
      ...{ targetFor: createTargetFor(options), placeFor: createPlaceFor(options) },
      // The command prints the result itself.
      ...{ onFault: () => {}, onRefresh: () => {}, onRevocation: () => {} },
    });
    try {
      // Before a lease is taken: relays on other machines end the leases of a process that they cannot see.
      await store.announce?.(spool).begin();
      return await cleaningUp(
        () => {
          // Where the signal is the end of the terminal, nobody reads the note.
          process.stderr.on("error", () => {});
          writeNote(WAITING);
          return refresher.close(GRACE_MS);
        },
        () => use(refresher),
      );
    } finally {
      await refresher.close(0);
      await spool.close(store.connections.freeLeases);
    }
  });
}

/** Addresses at which the service listens, if it runs. */
function selfAddressesFrom({ listen, adminListen }: Config): readonly SelfAddress[] {
  const ports = adminListen === "off" ? [listen] : [listen, adminListen];
  return ports.map(({ host, port }) => ({ address: host, port }));
}
