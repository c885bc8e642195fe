import Airtable from "airtable";
import { caught, defineSdk } from "../sdk.js";

const RECORDS = Array.from({ length: 5 }, (_, at) => ({ id: `rec${at + 1}`, fields: { Name: `Name ${at + 1}` } }));
const API = "api.airtable.com/v0/app1";

export const sdk = defineSdk({
  package: "airtable",
  provider: "airtable",
  connect: async (account) =>
    new Airtable({ apiKey: await account.token(), endpointUrl: account.via("api.airtable.com") }),
  routes: () => ({
    [`GET ${API}/Tasks%202`]: ({ query }) => {
      const start = Number(query.get("offset") ?? 0);
      const offset = start + 2 < RECORDS.length ? String(start + 2) : undefined;
      return { body: { records: RECORDS.slice(start, start + 2), offset } };
    },
    [`POST ${API}/Tasks%202/`]: ({ body }) => ({ body: { id: "rec6", ...JSON.parse(body.toString()) } }),
    [`GET ${API}/Tasks%202/*`]: () => ({ status: 404, body: { error: { type: "NOT_FOUND", message: "No record" } } }),
    [`DELETE ${API}/Tasks%202/*`]: ({ parts: [id] }) => ({ body: { id, deleted: true } }),
  }),
  work: async (airtable) => {
    const tasks = airtable.base("app1")("Tasks 2");
    const plain = ({ id, fields }: { readonly id: string; readonly fields: object }) => ({ id, fields });
    const select = { pageSize: 2, filterByFormula: "NOT({Name} = 'ü & é')" };
    return {
      list: (await tasks.select(select).firstPage()).map(plain),
      pages: (await tasks.select(select).all()).map(plain),
      create: plain(await tasks.create({ Name: "Grüße" })),
      delete: (await tasks.destroy("rec1")).id,
      error: await caught(tasks.find("rec9"), ({ error, message, statusCode }) => [error, message, statusCode]),
    };
  },
});
