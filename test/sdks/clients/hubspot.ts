import { Client } from "@hubspot/api-client";
import { FilterOperatorEnum } from "@hubspot/api-client/lib/codegen/crm/contacts/index.js";
import { caught, defineSdk } from "../sdk.js";

const CONTACTS = Array.from({ length: 5 }, (_, at) => ({
  id: `${at + 1}`,
  properties: { firstname: `Name ${at + 1}` },
}));
const API = "api.hubapi.com";

export const sdk = defineSdk({
  package: "@hubspot/api-client",
  provider: "hubspot",
  connect: async (account) =>
    new Client({
      accessToken: await account.token(),
      basePath: account.via("api.hubapi.com"),
      numberOfApiCallRetries: 2,
    }),
  routes: () => ({
    [`GET ${API}/crm/v3/objects/contacts`]: ({ query }) => {
      const start = Number(query.get("after") ?? 0);
      const more = start + 2 < CONTACTS.length && { paging: { next: { after: `${start + 2}` } } };
      return { body: { results: CONTACTS.slice(start, start + 2), ...more } };
    },
    [`POST ${API}/crm/v3/objects/contacts`]: ({ body }) => ({
      status: 201,
      body: { id: "6", ...JSON.parse(`${body}`) },
    }),
    [`PATCH ${API}/crm/v3/objects/contacts/6`]: ({ body }) => ({ body: { id: "6", ...JSON.parse(`${body}`) } }),
    [`DELETE ${API}/crm/v3/objects/contacts/6`]: () => ({ status: 204 }),
    [`POST ${API}/crm/v3/objects/contacts/search`]: ({ before }) =>
      before === 0
        ? { status: 429, body: { status: "error", message: "You have reached your secondly limit." } }
        : { body: { total: 1, results: CONTACTS.slice(0, 1) } },
    [`GET ${API}/crm/v3/objects/contacts/*`]: () => ({
      status: 404,
      fields: { "x-hubspot-correlation-id": "c-1" },
      body: { status: "error", category: "OBJECT_NOT_FOUND", message: "resource not found", correlationId: "c-1" },
    }),
    [`POST ${API}/files/v3/files`]: ({ body }) => ({ status: 201, body: { id: "7", size: body.length > 0 } }),
  }),
  work: async ({ crm, files }) => {
    const { basicApi, searchApi } = crm.contacts;
    const properties = { firstname: "Grüße", email: "a+b@example.com" };
    const filter = { propertyName: "email", operator: FilterOperatorEnum.Eq, value: "a+b@example.com" };
    const found = await searchApi.doSearch({ filterGroups: [{ filters: [filter] }], limit: 1, after: "", sorts: [] });
    const options = JSON.stringify({ access: "PRIVATE" });
    const file = { data: Buffer.from("a file\r\n\0"), name: "a.txt" };
    return {
      list: await basicApi.getPage(2, undefined, ["firstname", "email"]),
      pages: await crm.contacts.getAll(2),
      create: await basicApi.create({ properties, associations: [] }),
      change: await basicApi.update("6", { properties: { firstname: "Ada" } }),
      delete: (await basicApi.archive("6")) ?? null,
      "rate limit": found,
      upload: await files.filesApi.upload(file, undefined, "/library", "a.txt", undefined, options),
      error: await caught(basicApi.getById("9"), ({ code, body, headers }) => [
        code,
        body,
        headers["x-hubspot-correlation-id"],
      ]),
    };
  },
});
