import type { AuthorizationOptions } from "../authorization/options.js";
import { messageFromOutcome } from "./outcome-text.js";
import type { PageQuery } from "./page-query.js";

/** What has just happened on the connect page, as its own address says; undefined when it says nothing that is known. */
export function noticeFrom({ catalog }: Pick<AuthorizationOptions, "catalog">, query: PageQuery): string | undefined {
  const provider = catalog.find(query.get("provider") ?? "");
  if (provider === undefined) return undefined;
  const { displayName } = provider;
  switch (query.get("outcome")) {
    case "success":
      return `${displayName} is connected.`;
    case "error": {
      const { title, advice } = messageFromOutcome(provider, { outcome: "error", error: query.get("error") ?? "" });
      return `${title}. ${advice}`;
    }
    case "disconnected":
      return `${displayName} is disconnected.`;
    case "disconnected_here":
      return `${displayName} is disconnected here. To end the access there as well, remove it in your ${displayName} account.`;
    default:
      return undefined;
  }
}
