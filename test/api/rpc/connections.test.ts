import { afterAll, beforeAll, describe } from "vitest";
import { rpcCallers } from "../../support/connection-callers.js";
import { describeConnections, SCENARIO_PROVIDERS } from "../../support/connection-scenarios.js";
import { type Harness, startHarness } from "../../support/harness.js";

let harness: Harness;
let callers: ReturnType<typeof rpcCallers>;

beforeAll(async () => {
  harness = await startHarness({ providers: SCENARIO_PROVIDERS });
  callers = rpcCallers(harness.url);
});

afterAll(() => harness.close());

describe.each(["Connect JSON", "Connect binary", "gRPC", "gRPC-Web"])(
  "the methods about connections over %s",
  (name) => {
    describeConnections(() => {
      const [, caller] = callers.find(([protocol]) => protocol === name) ?? [];
      if (caller === undefined) throw new Error(`no caller for ${name}`);
      return { harness, caller, kind: "rpc" };
    });
  },
);
