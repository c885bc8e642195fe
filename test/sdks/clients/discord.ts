import { DiscordAPIError, REST } from "@discordjs/rest";
import { caught, defineSdk } from "../sdk.js";

const GUILDS = Array.from({ length: 5 }, (_, at) => ({ id: `${at + 1}`, name: `Guild ${at + 1}` }));
const API = "discord.com/api/v10";

export const sdk = defineSdk({
  package: "@discordjs/rest",
  provider: "discord",
  connect: async (account) =>
    new REST({ authPrefix: "Bearer", api: `${account.via("discord.com")}/api` }).setToken(await account.token()),
  routes: () => ({
    [`GET ${API}/users/@me/guilds`]: ({ query }) => {
      const start = GUILDS.findIndex(({ id }) => id === query.get("after")) + 1;
      return { body: GUILDS.slice(start, start + 2) };
    },
    [`POST ${API}/channels/1/messages`]: ({ body, before }) =>
      before === 0
        ? { status: 429, fields: { "retry-after": "0" }, body: { message: "Slow", retry_after: 0, global: false } }
        : { body: { id: "7", got: body.includes("Grüße") } },
    [`GET ${API}/channels/*`]: () => ({ status: 404, body: { message: "Unknown Channel", code: 10003 } }),
    [`DELETE ${API}/channels/1/messages/7`]: () => ({ status: 204 }),
  }),
  work: async (rest) => {
    const pages: unknown[] = [];
    for (let after = "0"; ; ) {
      const page = (await rest.get("/users/@me/guilds", {
        query: new URLSearchParams({ limit: "2", after }),
      })) as typeof GUILDS;
      pages.push(...page);
      if (page.length < 2) break;
      after = page.at(-1)?.id ?? "";
    }
    const body = { content: "Grüße" };
    const files = [{ name: "a.txt", data: Buffer.from("a file\r\n\0") }];
    const created = await rest.post("/channels/1/messages", { body, files });
    return {
      list: await rest.get("/users/@me/guilds"),
      pages,
      create: created,
      upload: created,
      "rate limit": created,
      delete: (await rest.delete("/channels/1/messages/7")) instanceof ArrayBuffer,
      error: await caught(rest.get("/channels/9"), (error: DiscordAPIError) => [
        error instanceof DiscordAPIError,
        error.status,
        error.code,
        error.rawError,
        error.method,
      ]),
    };
  },
});
