import { Agent } from "undici";
import type { ChildRelay } from "./child-relay.js";

/** Posts to the JSON route of a relay. */
export interface RestRows {
  /** What the row says: `success` or the errorType. Rejects when there is no row. */
  call(providerName: string, url: string, options?: { readonly padTo?: number }): Promise<string>;
  close(): Promise<void>;
}

/** A client with as many connections as it has calls at once. */
export function createRestRows(relay: Pick<ChildRelay, "url" | "publicKey">): RestRows {
  const agent = new Agent({ pipelining: 1 });
  return {
    async call(providerName, url, { padTo = 0 } = {}) {
      const path = `/oauth/method/${providerName}/call?user_id=u&public_key=${relay.publicKey}`;
      const body = JSON.stringify({ url, method: "GET" }).padEnd(padTo);
      const answer = await agent.request({ origin: relay.url, path, method: "POST", body });
      const { rows } = (await answer.body.json()) as { rows: [{ pincStatus: string; errorType?: string }] };
      return rows[0].errorType ?? rows[0].pincStatus;
    },
    close: () => agent.destroy(),
  };
}

/** How often each text stands in the list. */
export function countsOf(texts: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}
