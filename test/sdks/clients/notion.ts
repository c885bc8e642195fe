import { Client, collectPaginatedAPI } from "@notionhq/client";
import { caught, defineSdk } from "../sdk.js";

const USERS = Array.from({ length: 5 }, (_, at) => ({ object: "user", id: `user-${at + 1}`, type: "bot" }));
const BUSY = { object: "error", status: 429, code: "rate_limited", message: "Rate limited." };
const API = "api.notion.com/v1";

export const sdk = defineSdk({
  package: "@notionhq/client",
  provider: "notion",
  connect: async (account) => new Client({ auth: await account.token(), baseUrl: account.via("api.notion.com") }),
  routes: () => ({
    [`GET ${API}/users`]: ({ query }) => {
      const start = Number(query.get("start_cursor") ?? 0);
      const more = start + 2 < USERS.length;
      const next = more ? String(start + 2) : null;
      return { body: { object: "list", results: USERS.slice(start, start + 2), has_more: more, next_cursor: next } };
    },
    [`POST ${API}/pages`]: ({ body, before }) =>
      before === 0
        ? { status: 429, fields: { "retry-after": "0" }, body: BUSY }
        : { body: { object: "page", id: "page-1", got: JSON.parse(body.toString()) } },
    [`GET ${API}/pages/*`]: () => ({
      status: 404,
      body: { object: "error", status: 404, code: "object_not_found", message: "Could not find page." },
    }),
    [`POST ${API}/file_uploads`]: () => ({ body: { object: "file_upload", id: "file-1", status: "pending" } }),
    [`POST ${API}/file_uploads/file-1/send`]: ({ body }) => ({
      body: { object: "file_upload", id: "file-1", status: "uploaded", size: body.length > 0 },
    }),
  }),
  work: async (notion) => {
    const parent = { database_id: "0123456789abcdef0123456789abcdef" };
    const created = await notion.pages.create({
      parent,
      properties: { Name: { title: [{ text: { content: "ü" } }] } },
    });
    const { id } = await notion.fileUploads.create({ filename: "a.txt", content_type: "text/plain" });
    const file = { filename: "a.txt", data: new Blob(["a file\r\n\0"], { type: "text/plain" }) };
    return {
      list: await notion.users.list({ page_size: 2 }),
      pages: await collectPaginatedAPI(notion.users.list, { page_size: 2 }),
      create: created,
      "rate limit": created.id,
      upload: await notion.fileUploads.send({ file_upload_id: id, file }),
      error: await caught(notion.pages.retrieve({ page_id: "nowhere" }), ({ name, status, code, message, body }) => [
        name,
        status,
        code,
        message,
        body,
      ]),
    };
  },
});
