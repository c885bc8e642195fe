import { Readable } from "node:stream";
import { BoxClient, BoxDeveloperTokenAuth } from "box-node-sdk";
import { caught, defineSdk } from "../sdk.js";

const ENTRIES = Array.from({ length: 5 }, (_, at) => ({ type: "folder", id: `${at + 1}`, name: `Folder ${at + 1}` }));
const FOLDER = { type: "folder", id: "6", name: "Grüße" };
const API = "api.box.com/2.0";

export const sdk = defineSdk({
  package: "box-node-sdk",
  provider: "box",
  around: ["dl.boxcloud.com"],
  connect: async (account) =>
    new BoxClient({ auth: new BoxDeveloperTokenAuth({ token: await account.token() }) }).withCustomBaseUrls({
      baseUrl: account.via("api.box.com"),
      uploadUrl: `${account.via("upload.box.com")}/api`,
    }),
  routes: () => ({
    [`GET ${API}/folders/0/items`]: ({ query }) => {
      const start = Number(query.get("marker") ?? 0);
      const next_marker = start + 2 < ENTRIES.length ? `${start + 2}` : null;
      return { body: { entries: ENTRIES.slice(start, start + 2), limit: 2, next_marker } };
    },
    [`POST ${API}/folders`]: ({ before }) =>
      before === 0
        ? { status: 429, fields: { "retry-after": "0" }, body: { type: "error", status: 429 } }
        : { status: 201, body: FOLDER },
    [`PUT ${API}/folders/6`]: () => ({ body: FOLDER }),
    [`DELETE ${API}/folders/6`]: () => ({ status: 204 }),
    "POST upload.box.com/api/2.0/files/content": ({ body }) => ({
      status: 201,
      body: { total_count: 1, entries: [{ type: "file", id: "7", size: body.length > 0 ? 1 : 0 }] },
    }),
    [`GET ${API}/files/7/content`]: () => ({ status: 302, fields: { location: "https://dl.boxcloud.com/one-time/7" } }),
    "open GET dl.boxcloud.com/one-time/7": () => ({
      fields: { "content-type": "application/octet-stream" },
      body: Buffer.from([0, 255, 10, 13, 128]),
    }),
    [`GET ${API}/folders/*`]: () => ({
      status: 404,
      body: { type: "error", status: 404, code: "not_found", message: "Not Found", request_id: "r1" },
    }),
  }),
  work: async ({ folders, uploads, downloads }) => {
    const queryParams = { usemarker: true, limit: 2 };
    const first = await folders.getFolderItems("0", { queryParams });
    const pages = [...(first.entries ?? [])];
    for (let marker = first.nextMarker; marker; ) {
      const page = await folders.getFolderItems("0", { queryParams: { ...queryParams, marker } });
      pages.push(...(page.entries ?? []));
      marker = page.nextMarker;
    }
    const created = await folders.createFolder({ name: "Grüße", parent: { id: "0" } });
    const attributes = { name: "a.txt", parent: { id: "0" } };
    const uploaded = await uploads.uploadFile({ attributes, file: Readable.from([Buffer.from("a file\r\n\0")]) });
    const content: Buffer[] = [];
    for await (const chunk of (await downloads.downloadFile("7")) ?? []) content.push(chunk as Buffer);
    const plain = ({ rawData }: { readonly rawData?: unknown }) => rawData;
    return {
      list: plain(first),
      pages: pages.map((entry) => "name" in entry && entry.name),
      create: plain(created),
      "rate limit": created.id,
      change: plain(await folders.updateFolderById("6", { requestBody: { name: "a" } })),
      delete: (await folders.deleteFolderById("6")) ?? null,
      upload: plain(uploaded),
      download: [...Buffer.concat(content)],
      error: await caught(folders.getFolderById("9"), ({ responseInfo }) => [
        responseInfo.statusCode,
        responseInfo.code,
        responseInfo.requestId,
        responseInfo.body,
      ]),
    };
  },
});
