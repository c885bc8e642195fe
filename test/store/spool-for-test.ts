import type { UnstoredAnswer } from "../../src/oauth/peers.js";

/** An answer with everything that one can have. */
export const ANSWER: UnstoredAnswer = {
  connection: {
    id: "c1",
    applicationId: "a1",
    userId: "a\0user\u{1f600}",
    providerName: "github",
    originParameters: { subdomain: "acme" },
    state: "ACTIVE",
    trouble: { since: 1, toldAt: 2 },
    version: 7,
  },
  tokens: {
    accessToken: Buffer.from([0, 255, 1]),
    refreshToken: Buffer.from([2, 254]),
    lateRefreshToken: Buffer.from([3]),
    idToken: undefined,
    scope: "read",
    obtainedAt: 1000,
    expiresAt: undefined,
  },
};
