import { LinearClient } from "@linear/sdk";
import { caught, defineSdk } from "../sdk.js";

const TEAMS = Array.from({ length: 5 }, (_, at) => ({ id: `team-${at + 1}`, name: `Team ${at + 1}` }));

export const sdk = defineSdk({
  package: "@linear/sdk",
  provider: "linear",
  connect: async (account) =>
    new LinearClient({ accessToken: await account.token(), apiUrl: `${account.via("api.linear.app")}/graphql` }),
  routes: () => ({
    "POST api.linear.app/graphql": ({ body }) => {
      const { query, variables } = JSON.parse(body.toString());
      if (query.includes("createComment"))
        return { body: { data: { commentCreate: { success: true, lastSyncId: 1 } } } };
      if (query.includes("query issue("))
        return {
          status: 400,
          body: {
            errors: [{ message: "Entity not found", extensions: { type: "invalid input", code: "INPUT_ERROR" } }],
          },
        };
      if (query.includes("query viewer"))
        return {
          status: 400,
          fields: { "x-ratelimit-requests-remaining": "0", "x-ratelimit-requests-reset": "1893456000000" },
          body: { errors: [{ message: "Too many", extensions: { type: "ratelimited", code: "RATELIMITED" } }] },
        };
      const start = TEAMS.findIndex(({ id }) => id === variables.after) + 1;
      const nodes = TEAMS.slice(start, start + 2);
      const pageInfo = { hasNextPage: start + 2 < TEAMS.length, endCursor: nodes.at(-1)?.id };
      return { body: { data: { teams: { nodes, pageInfo } } } };
    },
  }),
  work: async (linear) => {
    const first = await linear.teams({ first: 2 });
    const names = first.nodes.map(({ name }) => name);
    let all = first;
    while (all.pageInfo.hasNextPage) all = await all.fetchNext();
    const failed = (error: any) => [error.constructor.name, error.type, error.status, error.message, error.errors];
    return {
      list: names,
      pages: all.nodes.map(({ name }) => name),
      create: (await linear.createComment({ issueId: "i1", body: "Grüße" })).success,
      error: await caught(linear.issue("nowhere"), failed),
      "rate limit": await caught(linear.viewer, failed),
    };
  },
});
