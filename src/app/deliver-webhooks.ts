import { RelayError } from "../model/errors.js";
import { causeOf, describeError } from "../telemetry/log.js";
import { createDeliverer, type Deliverer, type Delivery } from "../webhooks/deliverer.js";
import type { Parts } from "./parts.js";

/** As labels of metrics are written. */
const OUTCOMES = { delivered: "delivered", retry: "retry", givenUp: "given_up" } as const;

const LEVELS = { delivered: "info", retry: "warn", givenUp: "error" } as const;

/** Begins to deliver events to applications; one line is logged for each attempt. */
export function deliverWebhooks({ store, sealer, webhookUpstream, metrics, log, logger }: Parts): Deliverer {
  return createDeliverer({
    webhooks: store.webhooks,
    sealer,
    upstream: webhookUpstream,
    now: Date.now,
    random: Math.random,
    onDelivery(delivery) {
      logger[LEVELS[delivery.outcome]](fieldsFrom(delivery), "webhook");
      metrics?.delivery(OUTCOMES[delivery.outcome]);
    },
    onFault: (error) => log.fault("webhooks", error),
  });
}

/** Names and numbers: neither address nor secret nor payload. */
function fieldsFrom({ event, outcome, statusCode, error }: Delivery) {
  const { id, type, endpoint, attempts } = event;
  return {
    eventId: id,
    type,
    applicationId: endpoint.applicationId,
    attempt: attempts,
    outcome,
    statusCode,
    ...(error === undefined ? {} : { error: reasonOf(error), cause: causeOf(error) }),
  };
}

function reasonOf(error: unknown): string {
  return error instanceof RelayError ? error.reason : describeError(error).class;
}
