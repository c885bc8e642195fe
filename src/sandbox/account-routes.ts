import { jsonAnswer } from "./answer.js";
import { integerParameter } from "./parameters.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { getRoute } from "./resource.js";

/** The account's own resources: a profile and a list. */
export const ACCOUNT_ROUTES: readonly ResourceRoute[] = [getRoute("/me", answerMe), getRoute("/items", answerItems)];

function answerMe({ account }: ResourceRequest) {
  return jsonAnswer(JSON.stringify({ sub: account.id, ...account }));
}

function answerItems({ query }: ResourceRequest) {
  const count = integerParameter(query, "count", { fallback: 3, min: 0, max: 10_000 });
  const items = Array.from({ length: count }, (_, index) => ({ id: index + 1, name: `Item ${index + 1}` }));
  return jsonAnswer(JSON.stringify(items));
}
