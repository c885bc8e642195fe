import { textOf } from "./expiries.js";
import type { Fleet } from "./fleet.js";
import type { TokenExchange } from "./token-log.js";
import type { World } from "./world.js";

/** Connections that a kill cost, held against what the provider saw. */
export interface Losses {
  /** One text per lost connection: what happened to its last refresh token. */
  readonly lost: readonly string[];
  /** Those of them whose refresh token was refused within a grace of so long: the others came too late, as is inevitable. */
  avoidable(graceMs: number): readonly string[];
  /** Judges a connection that has to be made again, and makes it again. */
  reconnect(userId: string): Promise<void>;
  /** What is wrong: a connection flagged without a cause, or one that the provider ended and nobody flagged. */
  findings(): readonly string[];
  reasons(): string;
  /** Refreshes that the provider performed and whose answer the next owner had to ask for again. */
  midRefresh(): number;
}

const REASONS = new Set(["rotation_lost_suspected", "invalid_grant"]);
/** From the answer on its way to the tokens stored: nobody else asks before a lease of 5 s has ended. */
const STORED_WITHIN_MS = 5000;
/** A request may be on its way when its process is killed, and a busy provider reads it only then. */
const READ_WITHIN_MS = 1000;

/** Follows the connections of a world. */
export function createLosses(world: World, fleet: Fleet): Losses {
  const lost: string[] = [];
  const delays = new Map<string, number>();
  const problems: string[] = [];
  const reasons = new Map<string, number>();
  const reconnecting = new Map<string, Promise<void>>();
  const flaggedTokens = new Set<string>();

  async function reconnectOnce(userId: string): Promise<void> {
    const { state, stateReason = "none" } = await world.find(userId);
    // Another caller has seen it first.
    if (state === "ACTIVE") return;
    if (!REASONS.has(stateReason)) problems.push(`${userId} is flagged with the reason ${stateReason}`);
    const uses = usesOfLastRefused(world.tokens.exchanges, userId);
    for (const { refreshToken } of uses) flaggedTokens.add(refreshToken);
    const text = describe(uses);
    if (!uses.some((use) => wasCutOff(use, fleet.kills))) problems.push(`${userId} was lost without a kill: ${text}`);
    const line = `${userId} ${stateReason}: ${text}`;
    lost.push(line);
    delays.set(line, (uses.at(-1)?.receivedAt ?? 0) - (uses[0]?.receivedAt ?? 0));
    reasons.set(stateReason, (reasons.get(stateReason) ?? 0) + 1);
    await world.connect(userId);
  }

  return {
    lost,
    avoidable: (graceMs) => lost.filter((line) => (delays.get(line) ?? 0) < graceMs),
    reconnect(userId) {
      const known = reconnecting.get(userId);
      if (known !== undefined) return known;
      const made = reconnectOnce(userId).finally(() => reconnecting.delete(userId));
      reconnecting.set(userId, made);
      return made;
    },
    findings() {
      const silent = world.tokens.exchanges.filter(
        ({ statusCode, refreshToken }) => statusCode === 400 && !flaggedTokens.has(refreshToken),
      );
      return [...problems, ...silent.map(({ userId }) => `${userId} was refused by the provider and never flagged`)];
    },
    reasons: () => textOf(reasons),
    midRefresh: () =>
      world.tokens.exchanges.length - new Set(world.tokens.exchanges.map((use) => use.refreshToken)).size,
  };
}

function usesOfLastRefused(exchanges: readonly TokenExchange[], userId: string): readonly TokenExchange[] {
  const refused = exchanges.findLast((exchange) => exchange.userId === userId && exchange.statusCode === 400);
  return exchanges.filter(({ refreshToken }) => refreshToken === refused?.refreshToken);
}

/** Whether a process was killed while its request was on its way, its answer was due, or had just gone out. */
function wasCutOff(
  { receivedAt, statusCode, answeredAt = receivedAt }: TokenExchange,
  kills: readonly number[],
): boolean {
  return (
    statusCode === 200 && kills.some((at) => at >= receivedAt - READ_WITHIN_MS && at <= answeredAt + STORED_WITHIN_MS)
  );
}

function describe(uses: readonly TokenExchange[]): string {
  const [first] = uses;
  if (first === undefined) return "the provider never refused it";
  const times = uses.map(({ receivedAt, statusCode }) => `${statusCode} after ${receivedAt - first.receivedAt} ms`);
  return `its refresh token was used ${uses.length} times (${times.join(", ")})`;
}
