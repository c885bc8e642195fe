import { Gitlab } from "@gitbeaker/rest";
import { caught, defineSdk } from "../sdk.js";

const ISSUES = Array.from({ length: 5 }, (_, at) => ({ id: at + 1, iid: at + 1, title: `Issue ${at + 1}` }));
const PROJECT = "gitlab.com/api/v4/projects/acme%2Fsite";

export const sdk = defineSdk({
  package: "@gitbeaker/rest",
  provider: "gitlab",
  connect: async (account) => new Gitlab({ oauthToken: await account.token(), host: account.via("gitlab.com") }),
  routes: () => ({
    [`GET ${PROJECT}/issues`]: ({ query }) => {
      const page = Number(query.get("page") ?? 1);
      const next = `https://${PROJECT}/issues?page=${page + 1}&per_page=2`;
      const links = page < 3 ? { link: `<${next}>; rel="next"`, "x-next-page": `${page + 1}` } : {};
      const fields = { ...links, "x-page": `${page}`, "x-per-page": "2", "x-total": "5", "x-total-pages": "3" };
      return { body: ISSUES.slice(2 * page - 2, 2 * page), fields };
    },
    [`POST ${PROJECT}/issues`]: ({ body, before }) =>
      before === 0
        ? { status: 429, fields: { "retry-after": "0" }, body: { message: "Retry later" } }
        : { status: 201, body: { iid: 6, got: body.toString() } },
    [`GET ${PROJECT}/issues/*`]: () => ({ status: 404, body: { message: "404 Issue Not Found" } }),
    [`POST ${PROJECT}/uploads`]: ({ body }) => ({ status: 201, body: { id: 1, alt: "a", size: body.length > 0 } }),
    [`GET ${PROJECT}/repository/files/src%2Fa%20b.txt/raw`]: () => ({
      fields: { "content-type": "application/octet-stream" },
      body: Buffer.from([0, 255, 10, 13, 128]),
    }),
  }),
  work: async (gitlab) => {
    const created = await gitlab.Issues.create("acme/site", "Grüße", { labels: "a b,c" });
    const blob = (await gitlab.RepositoryFiles.showRaw("acme/site", "src/a b.txt", "main")) as Blob;
    return {
      list: await gitlab.Issues.all({ projectId: "acme/site", perPage: 2, maxPages: 1 }),
      pages: await gitlab.Issues.all({ projectId: "acme/site", perPage: 2 }),
      create: created,
      "rate limit": created.iid,
      upload: await gitlab.ProjectMarkdownUploads.create("acme/site", {
        content: new Blob(["a file\r\n\0"]),
        filename: "a.txt",
      }),
      download: [...Buffer.from(await blob.arrayBuffer())],
      error: await caught(gitlab.Issues.show(9, { projectId: "acme/site" }), ({ name, message, cause }) => [
        name,
        message,
        cause.description,
        cause.response.status,
      ]),
    };
  },
});
