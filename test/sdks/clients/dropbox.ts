import { Dropbox } from "dropbox";
import { caught, defineSdk } from "../sdk.js";

const ENTRIES = Array.from({ length: 5 }, (_, at) => ({ ".tag": "file", id: `id:${at + 1}`, name: `${at + 1}.txt` }));
const API = "api.dropboxapi.com/2/files";
const CONTENT = "content.dropboxapi.com/2/files";

export const sdk = defineSdk({
  package: "dropbox",
  provider: "dropbox",
  // In Node.js it reads downloads with `buffer()`, which the answers of a standard fetch do not have.
  connect: (account) =>
    new Dropbox({
      fetch: async (...request: Parameters<typeof fetch>) => {
        const response = await account.fetch(...request);
        return Object.assign(response, { buffer: async () => Buffer.from(await response.arrayBuffer()) });
      },
    }),
  routes: () => {
    const page = (start: number) => ({
      body: { entries: ENTRIES.slice(start, start + 2), cursor: `${start + 2}`, has_more: start + 2 < ENTRIES.length },
    });
    return {
      [`POST ${API}/list_folder`]: () => page(0),
      [`POST ${API}/list_folder/continue`]: ({ body }) => page(Number(JSON.parse(body.toString()).cursor)),
      [`POST ${API}/create_folder_v2`]: ({ body }) => ({ body: { metadata: JSON.parse(body.toString()) } }),
      [`POST ${CONTENT}/upload`]: ({ body, fields }) => ({
        body: { size: body.length, path_display: JSON.parse(String(fields["dropbox-api-arg"])).path },
      }),
      [`POST ${CONTENT}/download`]: ({ fields }) => ({
        fields: {
          "content-type": "application/octet-stream",
          "dropbox-api-result": JSON.stringify({ name: "a.txt", asked: fields["dropbox-api-arg"] }),
        },
        body: Buffer.from([0, 255, 10, 13, 128]),
      }),
      [`POST ${API}/get_metadata`]: () => ({
        status: 409,
        body: { error_summary: "path/not_found/..", error: { ".tag": "path", path: { ".tag": "not_found" } } },
      }),
      [`POST ${API}/delete_v2`]: () => ({
        status: 429,
        fields: { "retry-after": "1" },
        body: { error_summary: "too_many_requests/..", error: { reason: { ".tag": "too_many_requests" } } },
      }),
    };
  },
  work: async (dropbox) => {
    const first = (await dropbox.filesListFolder({ path: "", limit: 2 })).result;
    const pages = [...first.entries];
    for (let { has_more, cursor } = first; has_more; ) {
      const { result } = await dropbox.filesListFolderContinue({ cursor });
      pages.push(...result.entries);
      ({ has_more, cursor } = result);
    }
    const downloaded = (await dropbox.filesDownload({ path: "/Grüße/a.txt" })).result as { fileBinary?: Buffer };
    const failed = ({ status, error }: any) => [status, error];
    return {
      list: first,
      pages,
      create: (await dropbox.filesCreateFolderV2({ path: "/Grüße" })).result,
      upload: (await dropbox.filesUpload({ path: "/Grüße/a.txt", contents: Buffer.from("a file\r\n\0") })).result,
      download: [downloaded, [...(downloaded.fileBinary ?? [])]],
      error: await caught(dropbox.filesGetMetadata({ path: "/nowhere" }), failed),
      "rate limit": await caught(dropbox.filesDeleteV2({ path: "/a" }), failed),
    };
  },
});
