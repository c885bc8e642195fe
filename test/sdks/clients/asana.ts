import { ApiClient, AttachmentsApi, TasksApi } from "asana";
import { caught, defineSdk } from "../sdk.js";

const TASKS = Array.from({ length: 5 }, (_, at) => ({ gid: `${at + 1}`, name: `Task ${at + 1}` }));
const API = "app.asana.com/api/1.0";

export const sdk = defineSdk({
  package: "asana",
  provider: "asana",
  connect: async (account) =>
    Object.assign(new ApiClient(), {
      basePath: `${account.via("app.asana.com")}/api/1.0`,
      authentications: { token: { type: "personalAccessToken", accessToken: await account.token() } },
    }),
  routes: () => ({
    [`GET ${API}/tasks`]: ({ query }) => {
      const start = Number(query.get("offset") ?? 0);
      const offset = `${start + 2}`;
      // The SDK reads the offset out of it, and asks its own base URL.
      const next = { offset, path: `/tasks?offset=${offset}`, uri: `https://${API}/tasks?offset=${offset}` };
      return { body: { data: TASKS.slice(start, start + 2), next_page: start + 2 < TASKS.length ? next : null } };
    },
    [`POST ${API}/tasks`]: ({ body }) => ({ status: 201, body: { data: { gid: "6", got: body.toString() } } }),
    [`PUT ${API}/tasks/6`]: ({ body }) => ({ body: { data: { gid: "6", got: body.toString() } } }),
    [`DELETE ${API}/tasks/6`]: () => ({ body: { data: {} } }),
    [`POST ${API}/attachments`]: ({ body }) => ({ body: { data: { gid: "7", got: body.includes("a file\r\n") } } }),
    [`GET ${API}/tasks/*`]: ({ parts: [gid] }) =>
      gid === "9"
        ? { status: 404, body: { errors: [{ message: "task: Unknown object: 9", help: "See the docs" }] } }
        : { status: 429, fields: { "retry-after": "30" }, body: { errors: [{ message: "Rate limit enforced." }] } },
  }),
  work: async (client) => {
    const tasks = new TasksApi(client);
    // Its types know only the name of a file.
    const file = Buffer.from("a file\r\n") as unknown as string;
    const first = await tasks.getTasks({ project: "1", limit: 2, opt_fields: "name,notes" });
    const pages = [...first.data];
    for (let page = await first.nextPage(); page.data !== null; page = await page.nextPage()) pages.push(...page.data);
    const failed = ({ status, response }: any) => [status, response.body, response.headers["retry-after"]];
    return {
      list: first.data,
      pages,
      create: (await tasks.createTask({ data: { name: "Grüße", projects: ["1"] } })).data,
      change: (await tasks.updateTask({ data: { completed: true } }, "6")).data,
      delete: (await tasks.deleteTask("6")).data,
      upload: (await new AttachmentsApi(client).createAttachmentForObject({ parent: "6", file })).data,
      error: await caught(tasks.getTask("9", {}), failed),
      "rate limit": await caught(tasks.getTask("8", {}), failed),
    };
  },
});
