// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

/** Where events go, how often, and what they carry. */
export const WEBHOOK_GUARDS: readonly Guard[] = [
  guard(
    "webhook: one claim per endpoint",
    ["(free_at <= :now OR free_at > :rest) RETURNING", "CAST(:now AS BIGINT) + CAST(:rest AS BIGINT) > 0 RETURNING"],
    "store/webhooks",
  ),
  guard(
    "webhook: late owner",
    ["WHERE id = :id AND free_at = :until", "WHERE id = :id AND CAST(:until AS BIGINT) > 0"],
    "store/webhooks",
  ),
  guard("webhook: disabled application", [" AND applications.state = 'ACTIVE' ) AS due", ") AS due"], "store/webhooks"),
  guard("webhook: order of events", ["ORDER BY oldest.place LIMIT 1", "LIMIT 1"], "store/webhooks"),
  guard("webhook: order of endpoints", ["ORDER BY free_at LIMIT", "LIMIT"], "store/webhooks"),
  guard(
    "webhook: no transaction for nothing",
    ["return due.length > 0 ? database", "return true ? database"],
    "store/webhooks",
  ),
  guard(
    "webhook: binding of the secret",
    ['column: "secret", applicationId,', 'column: "secret", applicationId: "",'],
    "store/webhooks",
  ),
  guard("webhook: rest after a failure", ["Math.min(waitMs, MAX_REST_MS)", "0"], "webhooks/deliverer"),
  guard("webhook: last attempt", ["delayMs === undefined || ", ""], "webhooks/retry"),
  guard(
    "webhook: redirect is no delivery",
    ["if (statusCode >= 200 && statusCode < 300", "if (statusCode >= 200 && statusCode < 400"],
    "webhooks/delivery",
  ),
  guard(
    "webhook: userinfo",
    [
      'const isBare = !text.includes("#") && url.username === "" && url.password === "";',
      'const isBare = !text.includes("#");',
    ],
    "webhooks/webhook-uri",
  ),
  guard("webhook: https", ['protocol === "https:" || rule === "loopback"', "true"], "webhooks/webhook-uri"),
  guard(
    "webhook: private network",
    [
      "connectionId: `webhook ${endpoint.applicationId}`, allowPrivateNetwork: false",
      "connectionId: `webhook ${endpoint.applicationId}`, allowPrivateNetwork: true",
    ],
    "webhooks/delivery",
  ),
  guard("webhook: end of the claims", ["isWanted && !isClosed", "isWanted"], "webhooks/deliverer"),
  guard(
    "webhook: size of an answer",
    ["maxResponseBytes: MAX_RECEIVER_ANSWER_BYTES", "maxResponseBytes: config.maxResponseBytes"],
    "webhooks/service",
  ),
];
