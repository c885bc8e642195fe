import type { HoldTokenAnswer } from "../../src/sandbox/oauth-routes.js";

/** One request to the token endpoint. Times are milliseconds since the epoch. */
export interface TokenExchange {
  /** Whose refresh token came, as far as the log knows. */
  readonly userId: string | undefined;
  readonly refreshToken: string;
  readonly receivedAt: number;
  readonly statusCode: number;
  /** The tokens given; empty text when none were. */
  readonly accessToken: string;
  /** Since when the answer is on its way; undefined while it is held. */
  answeredAt: number | undefined;
}

/** Everything that was asked of the token endpoint, and whose tokens are whose. */
export interface TokenLog {
  readonly exchanges: readonly TokenExchange[];
  /** To be given to the sandbox. */
  readonly hold: HoldTokenAnswer;
  /** Waited for before each answer; at first there is nothing to wait for. */
  play: (exchange: TokenExchange) => Promise<void>;
  /** Notes whose a refresh token is that the provider gave elsewhere. */
  learn(refreshToken: string, userId: string): void;
}

/** Starts an empty log. */
export function createTokenLog(): TokenLog {
  const owners = new Map<string, string>();
  const exchanges: TokenExchange[] = [];
  const log: TokenLog = {
    exchanges,
    play: async () => {},
    learn: (refreshToken, userId) => void owners.set(refreshToken, userId),
    async hold(received, { statusCode, body }) {
      const refreshToken = new URLSearchParams(received.body.toString()).get("refresh_token") ?? "";
      const given = JSON.parse(String(body)) as { access_token?: string; refresh_token?: string };
      const userId = owners.get(refreshToken);
      if (given.refresh_token !== undefined && userId !== undefined) owners.set(given.refresh_token, userId);
      const exchange: TokenExchange = {
        userId,
        refreshToken,
        receivedAt: Date.now(),
        statusCode,
        accessToken: given.access_token ?? "",
        answeredAt: undefined,
      };
      exchanges.push(exchange);
      await log.play(exchange);
      exchange.answeredAt = Date.now();
    },
  };
  return log;
}
