import { Octokit } from "@octokit/rest";
import { defineSdk } from "../sdk.js";
import { githubRoutes, workWith } from "./octokit.js";

/** Pages by the `Link` that the relay writes. */
export const sdk = defineSdk({
  package: "@octokit/rest",
  provider: "github",
  connect: async (account) => new Octokit({ auth: await account.token(), baseUrl: account.via("api.github.com") }),
  routes: githubRoutes,
  work: workWith,
});
