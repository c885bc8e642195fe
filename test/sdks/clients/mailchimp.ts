import mailchimp from "@mailchimp/mailchimp_marketing";
import { caught, defineSdk } from "../sdk.js";

const LISTS = Array.from({ length: 5 }, (_, at) => ({ id: `list${at + 1}`, name: `List ${at + 1}` }));
const API = "us19.api.mailchimp.com/3.0";

export const sdk = defineSdk({
  package: "@mailchimp/mailchimp_marketing",
  provider: "mailchimp",
  originParameters: { dc: "us19" },
  connect: async (account) =>
    Object.assign(mailchimp, {
      basePath: `${account.via("us19.api.mailchimp.com")}/3.0`,
      config: { accessToken: await account.token() },
    }),
  routes: () => ({
    [`GET ${API}/lists`]: ({ query }) => {
      const offset = Number(query.get("offset") ?? 0);
      return { body: { lists: LISTS.slice(offset, offset + 2), total_items: LISTS.length } };
    },
    [`POST ${API}/lists/list1/members`]: ({ body }) => ({ body: { id: "m1", got: body.toString() } }),
    [`POST ${API}/file-manager/files`]: ({ body }) => ({ body: { id: 1, size: body.length } }),
    [`DELETE ${API}/lists/list1/members/m1`]: () => ({ status: 204 }),
    [`GET ${API}/lists/*`]: ({ parts: [id] }) => {
      const status = id === "busy" ? 429 : 404;
      const type = { "content-type": "application/problem+json; charset=utf-8" };
      return {
        status,
        fields: type,
        body: JSON.stringify({ title: "No", status, detail: `Not ${id}`, instance: "1" }),
      };
    },
  }),
  work: async (client) => {
    const { lists } = client;
    const pages: unknown[] = [];
    for (let total = 1; pages.length < total; ) {
      const page = await lists.getAllLists({ count: 2, offset: pages.length, fields: ["lists.id", "lists.name"] });
      pages.push(...page.lists);
      total = page.total_items;
    }
    const failed = ({ status, response }: any) => [status, response.body ?? response.text];
    return {
      list: await lists.getAllLists({ count: 2 }),
      pages,
      create: await lists.addListMember("list1", { email_address: "grüße+a@example.com", status: "subscribed" }),
      upload: await client.fileManager.upload({ name: "a.txt", file_data: Buffer.from("a file").toString("base64") }),
      delete: await lists.deleteListMember("list1", "m1"),
      error: await caught(lists.getList("nowhere"), failed),
      "rate limit": await caught(lists.getList("busy"), failed),
    };
  },
});
