import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Application, hashPrivateKey } from "../../src/applications/application.js";
import { signCallToken } from "../support/call-tokens.js";
import { REPOSITORY } from "./build.js";
import { medianOf } from "./median.js";

/** CPU microseconds of what the relay does for a caller's proof, with a call token that it has verified before and without. */
interface CallTokenCost {
  readonly withoutUs: number;
  readonly withUs: number;
  /** Median of the differences of each turn. */
  readonly addedUs: number;
}

const TURNS = 60;
/** Until the code is compiled. */
const WARM_TURNS = 10;
const CALLS_PER_TURN = 5000;

/** Longer than a block of SHA-256, as every private key. */
const PRIVATE_KEY = `relay_sk_${"k".repeat(64)}`;
const APPLICATION: Application = {
  ...({} as Application),
  publicKey: "p".repeat(43),
  privateKeyHash: randomBytes(60),
  maxCallTokenSeconds: 0,
  callerAuth: "PUBLIC_KEY",
  allowedOrigins: [],
  allowedAddresses: [],
};
const REQUEST = {
  method: "GET",
  origin: "https://api.example.com",
  target: "/repos/acme/x/issues?page=2",
  headers: [],
};
const RULES = [{ methods: ["POST"] }, { methods: ["GET"], paths: ["/user", "/repos/acme/**"] }];

const PRIVATE_KEY_HASH = hashPrivateKey(PRIVATE_KEY);
const OPTIONS = { openPrivateKeyHash: () => PRIVATE_KEY_HASH, now: Date.now };
const NAMES = ["example"];

/**
 * Measures what a call token of some 430 characters, with two rules, adds to a call: the proof read, judged by the hash of
 * its text, and the rules judged. In turns with the same call without one, so that a slow second of the machine meets both.
 * By the relay that is built: what a loader compiles on the way takes several times as long.
 */
export async function measureCallTokenCost(): Promise<CallTokenCost> {
  const { callerFieldsOf, callerFrom, decideCaller } = await built<Caller>("caller");
  const { judgeRequest } = await built<CallRules>("call-rules");
  const { isForProvider } = await built<CallTokens>("call-token");

  /** As `call/allowed-call.ts` does. Throws where the call would be refused. */
  function judge({ headers, rawHeaders, keys }: Asked): void {
    const { userId, proof } = callerFrom(callerFieldsOf({ headers, rawHeaders }, "127.0.0.1"), keys);
    const decision = decideCaller(OPTIONS, APPLICATION, { userId, proof });
    const token = proof.callToken?.token;
    const verdict = token?.rules && judgeRequest(token.rules, REQUEST);
    if (decision.result === "deny" || !isForProvider(token, NAMES) || verdict?.isAllowed === false) {
      throw new Error("refused");
    }
  }

  const claims = { sub: "user-1", providers: NAMES, rules: RULES };
  const callToken = signCallToken({ ...APPLICATION, privateKey: PRIVATE_KEY }, { claims });
  const without = askedWith({}, APPLICATION.publicKey, "user-1");
  const shown = askedWith({ authorization: `Bearer ${callToken}` }, "", "");
  const turns = Array.from({ length: WARM_TURNS + TURNS }, () => ({
    without: cpuUsOf(judge, without),
    with: cpuUsOf(judge, shown),
  })).slice(WARM_TURNS);
  const median = (value: (turn: (typeof turns)[number]) => number) =>
    Number((medianOf(turns.map(value)) ?? 0).toFixed(2));
  return {
    withoutUs: median((turn) => turn.without),
    withUs: median((turn) => turn.with),
    addedUs: median((turn) => turn.with - turn.without),
  };
}

type Caller = typeof import("../../src/applications/caller.js");
type CallRules = typeof import("../../src/applications/call-rules.js");
type CallTokens = typeof import("../../src/applications/call-token.js");

async function built<Module>(name: string): Promise<Module> {
  return (await import(pathToFileURL(join(REPOSITORY, `dist/src/applications/${name}.js`)).href)) as Module;
}

type Asked = ReturnType<typeof askedWith>;

function askedWith(proof: Readonly<Record<string, string>>, publicKey: string, userId: string) {
  const headers = { "content-type": "application/json", ...proof };
  const keys = { publicKey, userId, privateKey: undefined, userSignature: undefined };
  return { headers, rawHeaders: Object.entries(headers).flat(), keys };
}

function cpuUsOf(judge: (asked: Asked) => void, asked: Asked): number {
  const before = process.cpuUsage();
  for (let call = 0; call < CALLS_PER_TURN; call++) judge(asked);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS_PER_TURN;
}
