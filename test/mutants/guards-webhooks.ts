import { type Guard, guard } from "./guard.js";

const CLAIMS = "store/webhook-claims.ts";
const RETRY = "webhooks/retry.ts";
const URI = "webhooks/webhook-uri.ts";

/** Where events go, how often, and what they carry. */
export const WEBHOOK_GUARDS: readonly Guard[] = [
  guard("webhook: one claim per endpoint", CLAIMS, ["endpoint.free_at <= :now AND ", ""], "store/webhooks"),
  guard("webhook: late owner", CLAIMS, ["WHERE id = ? AND free_at = ?", "WHERE id = ? AND ? > 0"], "store/webhooks"),
  guard("webhook: disabled application", CLAIMS, ["applications.state = 'ACTIVE' AND ", ""], "store/webhooks"),
  guard("webhook: order of events", CLAIMS, [") ORDER BY place LIMIT 1", ") LIMIT 1"], "store/webhooks"),
  guard("webhook: order of endpoints", CLAIMS, ["ORDER BY endpoint.free_at LIMIT", "LIMIT"], "store/webhooks"),
  guard(
    "webhook: no write lock for nothing",
    "store/webhooks.ts",
    ["(await attempt.read(() => hasDue(now)))", "true"],
    "store/webhooks",
  ),
  guard(
    "webhook: binding of the secret",
    "webhooks/secret.ts",
    ['column: "secret", applicationId,', 'column: "secret", applicationId: "",'],
    "store/webhooks",
  ),
  guard("webhook: rest after a failure", RETRY, ["Math.min(waitMs, MAX_REST_MS)", "0"], "webhooks/deliverer"),
  guard("webhook: last attempt", RETRY, ["delayMs === undefined || ", ""], "webhooks/retry"),
  guard("webhook: redirect is no delivery", RETRY, ["statusCode < 300", "statusCode < 400"], "webhooks/delivery"),
  guard("webhook: userinfo", URI, ['url.username !== "" || url.password !== ""', "false"], "webhooks/webhook-uri"),
  guard("webhook: https", URI, ['protocol === "https:" || rule === "loopback"', "true"], "webhooks/webhook-uri"),
  guard(
    "webhook: private network",
    "webhooks/send-webhook.ts",
    ["allowPrivateNetwork: false", "allowPrivateNetwork: true"],
    "webhooks/delivery",
  ),
  guard("webhook: end of the claims", "webhooks/slots.ts", ["isWanted && !isClosed", "isWanted"], "webhooks/deliverer"),
  guard(
    "webhook: size of an answer",
    "parts.ts",
    ["maxResponseBytes: MAX_RECEIVER_ANSWER_BYTES", "maxResponseBytes: config.maxResponseBytes"],
    "webhooks/service",
  ),
];
