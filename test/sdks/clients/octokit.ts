import { Octokit } from "@octokit/rest";
import { caught, defineSdk } from "../sdk.js";
import type { Routes } from "../stand-in.js";

const ISSUES = Array.from({ length: 5 }, (_, at) => ({ id: at + 1, title: `Issue ${at + 1}` }));
const REPO = { owner: "acme", repo: "site" };
const API = "api.github.com/repos/acme/site";

export const sdk = defineSdk({
  package: "@octokit/rest",
  provider: "github",
  connect: (account) => new Octokit({ request: { fetch: account.fetch } }),
  routes: githubRoutes,
  work: async (octokit) => {
    const { rest } = octokit;
    // 100 MB, as bytes: Octokit sends whatever fetch takes.
    const data = Buffer.alloc(100_000_000, "relay") as unknown as string;
    const asset = { release_id: 7, name: "build 1.zip", headers: { "content-type": "application/zip" } };
    const uploaded = await rest.repos.uploadReleaseAsset({ ...REPO, ...asset, data });
    return { ...(await workWith(octokit)), upload: uploaded.data };
  },
});

/** What GitHub answers. */
export function githubRoutes(): Routes {
  return {
    [`GET ${API}/issues`]: ({ query }) => {
      const page = Number(query.get("page") ?? 1);
      const next = `<https://${API}/issues?per_page=2&page=${page + 1}>; rel="next"`;
      return { body: ISSUES.slice(2 * page - 2, 2 * page), fields: page < 3 ? { link: next } : {} };
    },
    [`POST ${API}/issues`]: ({ body }) => ({ status: 201, body: { number: 6, ...JSON.parse(body.toString()) } }),
    [`GET ${API}/issues/*`]: ({ parts: [number] }) => ({
      status: 404,
      body: { message: "Not Found", documentation_url: "https://docs.github.com/rest", number },
    }),
    [`GET ${API}/contents/*`]: () => ({
      fields: { "content-type": "application/vnd.github.raw+json; charset=utf-8", etag: '"of the readme"' },
      body: Buffer.from([0, 255, 10, 13, 128]),
    }),
    [`POST uploads.github.com/repos/acme/site/releases/7/assets`]: ({ query, fields }) => ({
      status: 201,
      body: { name: query.get("name"), size: Number(fields["content-length"]), state: "uploaded" },
    }),
    "GET api.github.com/rate_limit": () => ({
      status: 403,
      fields: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1893456000", "retry-after": "60" },
      body: { message: "API rate limit exceeded" },
    }),
  };
}

/** All but what goes to another host of GitHub. */
export async function workWith({ rest, paginate }: Octokit) {
  const pages = await paginate(rest.issues.listForRepo, { ...REPO, per_page: 2 });
  const { data: first, headers } = await rest.issues.listForRepo({ ...REPO, per_page: 2 });
  const created = await rest.issues.create({ ...REPO, title: "Grüße", labels: ["a b", "c/d"] });
  const readme = await rest.repos.getContent({ ...REPO, path: "README", mediaType: { format: "raw" } });
  return {
    list: [first, headers.link !== undefined],
    pages,
    create: created.data,
    download: [readme.data, readme.headers.etag],
    error: await caught(rest.issues.get({ ...REPO, issue_number: 99 }), ({ status, response }) => [
      status,
      response.data,
    ]),
    "rate limit": await caught(rest.rateLimit.get(), ({ status, response }) => [
      status,
      response.headers["x-ratelimit-remaining"],
      response.headers["retry-after"],
      response.data,
    ]),
  };
}
