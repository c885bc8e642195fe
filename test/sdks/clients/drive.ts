import { Readable } from "node:stream";
import { drive } from "@googleapis/drive";
import { caught, defineSdk } from "../sdk.js";

const FILES = Array.from({ length: 5 }, (_, at) => ({ id: `${at + 1}`, name: `File ${at + 1}` }));
const API = "www.googleapis.com/drive/v3/files";

export const sdk = defineSdk({
  package: "@googleapis/drive",
  provider: "googledrive",
  connect: (account) => drive({ version: "v3", fetchImplementation: account.fetch }),
  routes: () => ({
    [`GET ${API}`]: ({ query, before }) => {
      if (before === 0) return { status: 429, body: { error: { code: 429, message: "Quota exceeded" } } };
      const start = Number(query.get("pageToken") ?? 0);
      const more = start + 2 < FILES.length && { nextPageToken: `${start + 2}` };
      return { body: { kind: "drive#fileList", files: FILES.slice(start, start + 2), ...more } };
    },
    [`POST ${API}`]: ({ body }) => ({ body: { id: "6", got: body.toString() } }),
    [`PATCH ${API}/6`]: ({ body }) => ({ body: { id: "6", got: body.toString() } }),
    [`DELETE ${API}/6`]: () => ({ status: 204 }),
    "POST www.googleapis.com/upload/drive/v3/files": ({ body }) => ({ body: { id: "7", size: body.length } }),
    [`GET ${API}/*`]: ({ parts: [id], query }) =>
      query.get("alt") === "media"
        ? { fields: { "content-type": "text/plain" }, body: Buffer.from([0, 255, 10, 13, 128]) }
        : {
            status: 404,
            body: { error: { code: 404, message: `File not found: ${id}.`, errors: [{ reason: "no" }] } },
          },
  }),
  work: async ({ files }) => {
    const list = { pageSize: 2, q: "name contains 'ü' and trashed = false", fields: "nextPageToken, files(id, name)" };
    const { data: first } = await files.list(list);
    const pages = [...(first.files ?? [])];
    for (let pageToken = first.nextPageToken; pageToken; ) {
      const { data } = await files.list({ ...list, pageToken });
      pages.push(...(data.files ?? []));
      pageToken = data.nextPageToken;
    }
    const media = { mimeType: "text/plain", body: Readable.from([Buffer.from("a file\r\n\0")]) };
    const downloaded = await files.get({ fileId: "7", alt: "media" }, { responseType: "arraybuffer" });
    return {
      list: first,
      "rate limit": first.nextPageToken,
      pages,
      create: (await files.create({ requestBody: { name: "Grüße", mimeType: "application/vnd.google-apps.folder" } }))
        .data,
      change: (await files.update({ fileId: "6", requestBody: { name: "a" } })).data,
      delete: (await files.delete({ fileId: "6" })).status,
      upload: (await files.create({ requestBody: { name: "a.txt" }, media })).data,
      download: [...Buffer.from(downloaded.data as ArrayBuffer)],
      error: await caught(files.get({ fileId: "9" }), ({ code, status, message, response }) => [
        code,
        status,
        message,
        response.data,
      ]),
    };
  },
});
