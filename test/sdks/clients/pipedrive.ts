import { v1, v2 } from "pipedrive";
import { caught, defineSdk } from "../sdk.js";

const PERSONS = Array.from({ length: 5 }, (_, at) => ({ id: at + 1, name: `Name ${at + 1}` }));
const API = "api.pipedrive.com";

export const sdk = defineSdk({
  package: "pipedrive",
  provider: "pipedrive",
  connect: async (account) =>
    new v2.Configuration({
      accessToken: await account.token(),
      basePath: `${account.via("api.pipedrive.com")}/api/v2`,
    }),
  routes: () => ({
    [`GET ${API}/api/v2/persons`]: ({ query }) => {
      const start = Number(query.get("cursor") ?? 0);
      const next_cursor = start + 2 < PERSONS.length ? `${start + 2}` : null;
      return { body: { success: true, data: PERSONS.slice(start, start + 2), additional_data: { next_cursor } } };
    },
    [`POST ${API}/api/v2/persons`]: ({ body }) => ({
      status: 201,
      body: { success: true, data: JSON.parse(`${body}`) },
    }),
    [`PATCH ${API}/api/v2/persons/6`]: ({ body }) => ({ body: { success: true, data: JSON.parse(`${body}`) } }),
    [`DELETE ${API}/api/v2/persons/6`]: () => ({ body: { success: true, data: { id: 6 } } }),
    [`GET ${API}/api/v2/persons/*`]: ({ parts: [id] }) =>
      id === "9"
        ? { status: 404, body: { success: false, error: "Person not found", code: "ERR_NOT_FOUND" } }
        : { status: 429, fields: { "x-ratelimit-reset": "2" }, body: { success: false, error: "request over limit" } },
    [`POST ${API}/v1/files`]: ({ body }) => ({ body: { success: true, data: { id: 7, size: body.length > 0 } } }),
    [`GET ${API}/v1/files/7/download`]: () => ({ fields: { "content-type": "text/plain" }, body: "a file\r\n\0" }),
  }),
  work: async (configuration) => {
    const persons = new v2.PersonsApi(configuration);
    // Files are in the older version of the API alone.
    const { accessToken = "", basePath = "" } = configuration;
    const files = new v1.FilesApi(new v1.Configuration({ accessToken, basePath: basePath.replace("/api/v2", "/v1") }));
    const pages: unknown[] = [];
    for (let cursor: string | undefined, more = true; more; ) {
      const { data, additional_data } = await persons.getPersons({ limit: 2, ...(cursor && { cursor }) });
      pages.push(...(data ?? []));
      cursor = additional_data?.next_cursor ?? undefined;
      more = cursor !== undefined;
    }
    const email = [{ value: "a+b@example.com", primary: true }];
    return {
      list: await persons.getPersons({ limit: 2, sort_by: "update_time" }),
      pages,
      create: await persons.addPerson({ AddPersonRequest: { name: "Grüße", emails: email } }),
      change: await persons.updatePerson({ id: 6, UpdatePersonRequest: { name: "Ada" } }),
      delete: await persons.deletePerson({ id: 6 }),
      upload: await files.addFile({ file: new File(["a file\r\n\0"], "a.txt"), person_id: 6 }),
      download: await files.downloadFile({ id: 7 }),
      error: await caught(persons.getPerson({ id: 9 }), (error) => error),
      "rate limit": await caught(persons.getPerson({ id: 8 }), (error) => error),
    };
  },
});
