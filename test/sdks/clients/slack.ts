import { WebClient } from "@slack/web-api";
import { all, caught, defineSdk } from "../sdk.js";

const CHANNELS = Array.from({ length: 5 }, (_, at) => ({ id: `C${at + 1}`, name: `channel-${at + 1}` }));
const API = "slack.com/api";

export const sdk = defineSdk({
  package: "@slack/web-api",
  provider: "slack",
  connect: (account) => new WebClient(undefined, { fetch: account.fetch }),
  routes: () => ({
    [`POST ${API}/conversations.list`]: ({ body }) => {
      const start = Number(new URLSearchParams(body.toString()).get("cursor") ?? 0);
      const next_cursor = start + 2 < CHANNELS.length ? String(start + 2) : "";
      return { body: { ok: true, channels: CHANNELS.slice(start, start + 2), response_metadata: { next_cursor } } };
    },
    [`POST ${API}/chat.postMessage`]: ({ body, before }) =>
      before === 0
        ? { status: 429, fields: { "retry-after": "0" }, body: { ok: false, error: "ratelimited" } }
        : { body: { ok: true, ts: "1.2", got: body.toString() } },
    [`POST ${API}/conversations.info`]: () => ({ body: { ok: false, error: "channel_not_found" } }),
    [`POST ${API}/files.getUploadURLExternal`]: () => ({
      body: { ok: true, file_id: "F1", upload_url: "https://files.slack.com/upload/v1/one-time" },
    }),
    "POST files.slack.com/upload/v1/one-time": ({ body }) => ({ body: `OK - ${body.length}` }),
    [`POST ${API}/files.completeUploadExternal`]: ({ body }) => ({
      fields: { "x-oauth-scopes": "files:write,chat:write" },
      body: { ok: true, files: [{ id: "F1" }], got: body.toString() },
    }),
  }),
  work: async (slack) => {
    const message = await slack.chat.postMessage({ channel: "C1", text: "Grüße & <more>", unfurl_links: false });
    return {
      list: await slack.conversations.list({ limit: 2 }),
      pages: await all(slack.paginate("conversations.list", { limit: 2 })),
      create: message,
      "rate limit": message.ts,
      upload: await slack.files.uploadV2({ channel_id: "C1", filename: "a.txt", file: Buffer.from("a file\r\n\0") }),
      error: await caught(slack.conversations.info({ channel: "C9" }), ({ code, data }) => [code, data]),
    };
  },
});
