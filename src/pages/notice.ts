import type { AuthorizationOptions } from "../authorization/options.js";
import { messageFromOutcome } from "./outcome-text.js";
import type { PageQuery } from "./page-query.js";

/** What has just happened on the connect page, for a person. */
export interface Notice {
  /** One sentence without its full stop. */
  readonly title: string;
  /** What it means, or what to do; may be empty. */
  readonly advice: string;
  /** Whether it is what the person wanted. */
  readonly isGood: boolean;
}

/** Reads it from the page's own address; undefined when that says nothing that is known. */
export function noticeFrom({ catalog }: Pick<AuthorizationOptions, "catalog">, query: PageQuery): Notice | undefined {
  const provider = catalog.find(query.get("provider") ?? "");
  if (provider === undefined) return undefined;
  const { displayName } = provider;
  switch (query.get("outcome")) {
    case "success":
      return { title: `${displayName} is connected`, advice: "", isGood: true };
    case "error": {
      const { title, advice } = messageFromOutcome(provider, { outcome: "error", error: query.get("error") ?? "" });
      return { title, advice, isGood: false };
    }
    case "disconnected":
      return { title: `${displayName} is disconnected`, advice: "", isGood: true };
    case "disconnected_here": {
      const advice = `${displayName} may still list the access that you gave. To end it there too, remove it in your ${displayName} account.`;
      return { title: `${displayName} is disconnected here`, advice, isGood: true };
    }
    default:
      return undefined;
  }
}
