import { IntercomClient, type IntercomError } from "intercom-client";
import { all, caught, defineSdk } from "../sdk.js";

const CONTACTS = Array.from({ length: 5 }, (_, at) => ({ type: "contact", id: `${at + 1}`, name: `Name ${at + 1}` }));
const API = "api.intercom.io";

export const sdk = defineSdk({
  package: "intercom-client",
  provider: "intercom",
  connect: async (account) =>
    new IntercomClient({ token: await account.token(), baseUrl: account.via("api.intercom.io") }),
  routes: () => ({
    [`GET ${API}/contacts`]: ({ query }) => {
      const start = Number(query.get("starting_after") ?? 0);
      const next = start + 2 < CONTACTS.length && { next: { per_page: 2, starting_after: `${start + 2}` } };
      const pages = { type: "pages", page: start / 2 + 1, ...next };
      return { body: { type: "list", data: CONTACTS.slice(start, start + 2), pages } };
    },
    [`POST ${API}/contacts`]: ({ body, before }) =>
      before === 0
        ? { status: 429, fields: { "retry-after": "1" }, body: { type: "error.list", errors: [] } }
        : { body: { type: "contact", id: "6", ...JSON.parse(`${body}`) } },
    [`PUT ${API}/contacts/6`]: ({ body }) => ({ body: { type: "contact", id: "6", ...JSON.parse(`${body}`) } }),
    [`DELETE ${API}/contacts/6`]: () => ({ body: { type: "contact", id: "6", deleted: true } }),
    [`GET ${API}/contacts/*`]: () => ({
      status: 404,
      body: { type: "error.list", request_id: "r1", errors: [{ code: "not_found", message: "User Not Found" }] },
    }),
  }),
  work: async ({ contacts }) => {
    const created = await contacts.create({ email: "a+b@example.com", name: "Grüße" });
    return {
      list: (await contacts.list({ per_page: 2 })).data,
      pages: await all(await contacts.list({ per_page: 2 })),
      create: created,
      "rate limit": created.id,
      change: await contacts.update({ contact_id: "6", name: "Ada" }),
      delete: await contacts.delete({ contact_id: "6" }),
      error: await caught(contacts.find({ contact_id: "9" }), (error: IntercomError) => [
        error.constructor.name,
        error.statusCode,
        error.body,
      ]),
    };
  },
});
