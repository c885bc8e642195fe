import { XeroClient } from "xero-node";
import { caught, defineSdk } from "../sdk.js";

const CONTACTS = Array.from({ length: 5 }, (_, at) => ({ ContactID: `${at + 1}`, Name: `Name ${at + 1}` }));
const API = "api.xero.com/api.xro/2.0";

export const sdk = defineSdk({
  package: "xero-node",
  provider: "xero",
  connect: async (account) => {
    const xero = new XeroClient();
    xero.accountingApi.basePath = `${account.via("api.xero.com")}/api.xro/2.0`;
    xero.setTokenSet({ access_token: await account.token() });
    return xero;
  },
  routes: () => ({
    [`GET ${API}/Contacts`]: ({ query }) => {
      const page = Number(query.get("page") ?? 1);
      return { body: { Contacts: CONTACTS.slice(2 * page - 2, 2 * page) } };
    },
    [`PUT ${API}/Contacts`]: ({ body }) => ({
      body: { Contacts: [{ ContactID: "6", Name: JSON.parse(`${body}`).Contacts[0].Name }] },
    }),
    [`POST ${API}/Contacts/6`]: ({ body }) => ({ body: { Contacts: [{ ContactID: "6", Name: body.toString() }] } }),
    [`PUT ${API}/Contacts/6/Attachments/*`]: ({ body, fields, parts: [name] }) => ({
      body: { Attachments: [{ FileName: name, ContentLength: body.length, MimeType: fields["content-type"] }] },
    }),
    [`GET ${API}/Contacts/6/Attachments/*`]: () => ({
      fields: { "content-type": "text/plain" },
      body: Buffer.from([0, 255, 10, 13, 128]),
    }),
    [`GET ${API}/Contacts/*`]: ({ parts: [id] }) =>
      id === "9"
        ? {
            status: 404,
            fields: { "content-type": "text/plain" },
            body: "The resource you're looking for cannot be found",
          }
        : { status: 429, fields: { "retry-after": "7", "x-rate-limit-problem": "minute" } },
  }),
  work: async ({ accountingApi: accounting }) => {
    const tenant = "11111111-2222-3333-4444-555555555555";
    const list = async (page: number) =>
      (await accounting.getContacts(tenant, undefined, 'Name.Contains("ü")', "Name ASC", undefined, page)).body
        .contacts ?? [];
    const pages: unknown[] = [];
    for (let page = 1, found = await list(1); found.length > 0; found = await list(++page)) pages.push(...found);
    const created = await accounting.createContacts(tenant, { contacts: [{ name: "Grüße" }] });
    const file = Buffer.from("a file\r\n\0");
    const attached = await accounting.createContactAttachmentByFileName(tenant, "6", "a b.txt", file as never);
    const downloaded = await accounting.getContactAttachmentByFileName(tenant, "6", "a.txt", "text/plain");
    const failed = (text: string) => {
      const { response } = JSON.parse(text);
      return [
        response.statusCode,
        response.body,
        response.headers["retry-after"],
        response.headers["x-rate-limit-problem"],
      ];
    };
    return {
      list: await list(1),
      pages,
      create: created.body.contacts,
      change: (await accounting.updateContact(tenant, "6", { contacts: [{ name: "Ada" }] })).body.contacts,
      upload: attached.body.attachments,
      download: [...downloaded.body],
      error: await caught(accounting.getContact(tenant, "9"), failed),
      "rate limit": await caught(accounting.getContact(tenant, "8"), failed),
    };
  },
});
