import type { Connection } from "../../src/oauth/connection.js";
import { refreshUnavailable } from "../../src/oauth/refreshable.js";
import type { Refresher } from "../../src/oauth/refresher.js";
import { createTokenSource } from "../../src/oauth/token-source.js";
import type { Sealer, Secret } from "../../src/sealing/seal.js";
import { providerFrom } from "../providers/provider-for-test.js";

const PROVIDER = providerFrom({});

/** Opens tokens by the product's own code, with nobody to refresh them. */
export function tokenSourceForTest({ sealer, now }: { readonly sealer: Sealer; readonly now: () => number }) {
  const refuse = () => Promise.reject(refreshUnavailable());
  const refresher: Refresher = {
    refresh: refuse,
    refreshBeside: () => {},
    storeLeft: refuse,
    requireRefreshable: refuse,
    close: async () => {},
  };
  const unused = () => Promise.reject(new Error("not in this test"));
  const connections = {
    find: async () => undefined,
    noteTrouble: unused,
    findEvidence: unused,
    requireReauthorization: unused,
  };
  const source = createTokenSource({
    ...{ sealer, catalog: { find: () => PROVIDER }, now, refresher, connections },
    signingClientFor: async () => undefined,
  });
  return {
    ...source,
    accessToken: async (connection: Connection, signal?: AbortSignal): Promise<Secret> => {
      const wait = { deadline: performance.now() + 1000, signal };
      return (await source.accessToken(connection, wait)).token as Secret;
    },
  };
}
