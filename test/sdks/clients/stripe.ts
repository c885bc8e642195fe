import Stripe from "stripe";
import { all, caught, defineSdk } from "../sdk.js";

const CUSTOMERS = Array.from({ length: 5 }, (_, at) => ({ id: `cus_${at + 1}`, object: "customer" }));

export const sdk = defineSdk({
  package: "stripe",
  provider: "stripe",
  connect: (account) => new Stripe("unused", { httpClient: Stripe.createFetchHttpClient(account.fetch) }),
  varying: ["idempotency-key", "x-stripe-client-telemetry"],
  routes: () => ({
    "GET api.stripe.com/v1/customers": ({ query }) => {
      const start = CUSTOMERS.findIndex(({ id }) => id === query.get("starting_after")) + 1;
      const data = CUSTOMERS.slice(start, start + 2);
      return { body: { object: "list", url: "/v1/customers", data, has_more: start + 2 < CUSTOMERS.length } };
    },
    "POST api.stripe.com/v1/customers": ({ body, before }) =>
      before === 0
        ? { status: 429, fields: { "stripe-should-retry": "true", "retry-after": "0" }, body: { error: {} } }
        : { body: { id: "cus_6", object: "customer", got: body.toString() } },
    "GET api.stripe.com/v1/customers/*": ({ parts: [id] }) => ({
      status: 404,
      fields: { "request-id": "req_1" },
      body: { error: { type: "invalid_request_error", code: "resource_missing", message: `No such customer: ${id}` } },
    }),
    "POST files.stripe.com/v1/files": ({ body }) => ({ body: { id: "file_1", object: "file", size: body.length } }),
    "DELETE api.stripe.com/v1/customers/*": ({ parts: [id] }) => ({ body: { id, object: "customer", deleted: true } }),
  }),
  work: async (stripe) => {
    const created = await stripe.customers.create({ name: "Ada & Co", metadata: { "a b": "ü" } });
    const file = { data: Buffer.from("a file\r\n\0"), name: "proof.txt", type: "text/plain" };
    return {
      list: (await stripe.customers.list({ limit: 2 })).data,
      pages: await all(stripe.customers.list({ limit: 2 })),
      create: created,
      "rate limit": created.id,
      upload: await stripe.files.create({ purpose: "dispute_evidence", file }),
      delete: await stripe.customers.del("cus_1"),
      error: await caught(stripe.customers.retrieve("cus_9"), (error) => [
        error.type,
        error.statusCode,
        error.requestId,
        error.code,
        error.message,
      ]),
    };
  },
});
