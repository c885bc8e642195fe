import { Connection } from "jsforce";
import { caught, defineSdk } from "../sdk.js";

const CONTACTS = Array.from({ length: 5 }, (_, at) => ({ Id: `003-${at + 1}`, Name: `Name ${at + 1}` }));
const API = "acme.my.salesforce.com/services/data/v60.0";

export const sdk = defineSdk({
  package: "jsforce",
  provider: "salesforce",
  originParameters: { instance: "acme" },
  connect: async (account) =>
    new Connection({
      instanceUrl: account.via("acme.my.salesforce.com"),
      accessToken: await account.token(),
      version: "60.0",
    }),
  routes: () => {
    const page = (start: number) => {
      const records = CONTACTS.slice(start, start + 2);
      const done = start + 2 >= CONTACTS.length;
      const next = `/services/data/v60.0/query/01g-${start + 2}`;
      return { body: { totalSize: CONTACTS.length, done, records, ...(!done && { nextRecordsUrl: next }) } };
    };
    return {
      [`GET ${API}/query`]: () => page(0),
      [`GET ${API}/query/01g-*`]: ({ parts: [start] }) => page(Number(start)),
      [`POST ${API}/sobjects/Contact`]: ({ body }) => ({
        status: 201,
        body: { id: "003-6", success: true, errors: [], got: body.toString() },
      }),
      [`PATCH ${API}/sobjects/Contact/003-6`]: () => ({ status: 204 }),
      [`DELETE ${API}/sobjects/Contact/003-6`]: () => ({ status: 204 }),
      [`POST ${API}/sobjects/ContentVersion`]: ({ body }) => ({
        status: 201,
        body: { id: "068-1", success: true, errors: [], size: body.length },
      }),
      [`GET ${API}/sobjects/ContentVersion/068-1/VersionData`]: () => ({
        fields: { "content-type": "text/plain" },
        body: "a file\r\n\0",
      }),
      [`GET ${API}/sobjects/Contact/*`]: () => ({
        status: 404,
        body: [{ errorCode: "NOT_FOUND", message: "The requested resource does not exist" }],
      }),
      [`GET ${API}/limits`]: ({ before }) =>
        before === 0 ? { status: 429, body: [] } : { body: { DailyApiRequests: { Max: 15000, Remaining: 14998 } } },
    };
  },
  work: async (salesforce) => {
    const soql = "SELECT Id, Name FROM Contact WHERE Name LIKE 'ü%' AND Email != 'a+b@example.com'";
    const first = await salesforce.query(soql);
    const file = { Title: "a", PathOnClient: "a.txt", VersionData: Buffer.from("a file\r\n\0").toString("base64") };
    return {
      list: first.records,
      pages: (await salesforce.query(soql, { autoFetch: true })).records,
      create: await salesforce.sobject("Contact").create({ LastName: "Grüße" }),
      change: await salesforce.sobject("Contact").update({ Id: "003-6", LastName: "Lovelace" }),
      delete: await salesforce.sobject("Contact").destroy("003-6"),
      upload: await salesforce.sobject("ContentVersion").create(file),
      download: await salesforce.request("/sobjects/ContentVersion/068-1/VersionData"),
      error: await caught(salesforce.sobject("Contact").retrieve("003-9"), ({ errorCode, message, data }) => [
        errorCode,
        message,
        data,
      ]),
      "rate limit": await salesforce.limits(),
    };
  },
});
