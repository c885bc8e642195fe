import { decideEgress } from "../../src/providers/egress.js";
import type { Provider } from "../../src/providers/provider.js";
import { providerFrom } from "../providers/provider-for-test.js";
import { SPECIAL_IPV4, SPECIAL_IPV6 } from "./address-notations.js";
import { type Bench, startBench, type Worker } from "./bench.js";
import { type Campaign, mustHold } from "./campaign.js";
import { type Exploration, explore, exploreList, joined, pick } from "./explore.js";
import { type FuzzRow, isUndecodable, passedTarget, rowFrom } from "./surfaces.js";
import { generatedUrls, listUrls, readCorpus, type UrlInput, type UrlPlaces } from "./url-inputs.js";
import { fieldValue } from "./wire-request.js";

const SURFACES = ["REST", "Connect"] as const;
const WORKERS = 8;
/** Stored with each connection at the provider with a template. */
const TENANT = { tenant: "acme" };
/** The resolver answers each query for it with the next special address. */
const RESOLVED_NAME = "addresses.test";

/** Names that were looked up, and the resolver that knows only this machine. */
interface FakeDns {
  readonly asked: Set<string>;
  /** What {@link RESOLVED_NAME} resolves to. */
  address: string;
}

/** Urls in every spelling: none may lead anywhere but to an allowed origin, and what is allowed arrives as written. */
export const fuzzUrls: Campaign = async ({ count, seed }) => {
  const dns: FakeDns = { asked: new Set(), address: "" };
  const bench = await startBench({ workers: WORKERS, providers: DEFINITIONS, upstream: { resolve: resolveWith(dns) } });
  await connectAll(bench);
  const places = placesOf(bench);
  const check = (input: UrlInput, worker: number) =>
    checkUrl(bench, places, dns, input, bench.workers[worker] as Worker);
  const corpus = readCorpus();
  const listed = pick(listUrls(places), Math.ceil((count - corpus.length) / 2), seed);
  const generated = Math.max(0, count - corpus.length - listed.length);
  const exploration = joined(
    await exploreList([...corpus, ...listed], check, WORKERS),
    await explore(generatedUrls(places), check, { count: generated, seed, workers: WORKERS }),
    await checkAddresses(bench, dns),
  );
  const result = await bench.finish(exploration);
  const strangers = [...dns.asked].filter((name) => !ALLOWED_NAMES.has(name));
  const problems = strangers.map((name) => ({ problem: "a name was looked up", input: name, origin: "the whole run" }));
  return { ...result, findings: [...result.findings, ...problems] };
};

const DEFINITIONS = [
  { name: "tenant", apiOrigins: ["https://{tenant}.example.com"] },
  { name: "resolved", apiOrigins: [`https://${RESOLVED_NAME}`] },
];

const ALLOWED_NAMES = new Set(["localhost", "api.github.com", "uploads.github.com", "acme.example.com", RESOLVED_NAME]);

function resolveWith(dns: FakeDns) {
  return async (hostname: string) => {
    dns.asked.add(hostname);
    if (hostname === "localhost") return [{ address: "127.0.0.1", family: 4 }];
    if (hostname === RESOLVED_NAME) return [{ address: dns.address, family: dns.address.includes(":") ? 6 : 4 }];
    throw new Error("ENOTFOUND");
  };
}

async function connectAll({ harness, application, workers }: Bench): Promise<void> {
  for (const { userId, token } of workers) {
    await harness.connect(application, userId, { providerName: "github", accessToken: token });
    await harness.connect(application, userId, { providerName: "resolved", accessToken: token });
    const options = { providerName: "tenant", accessToken: token, originParameters: TENANT };
    await harness.connect(application, userId, options);
  }
}

function placesOf({ provider, bystanders }: Bench): UrlPlaces {
  return {
    allowed: {
      wire: [`http://127.0.0.1:${provider.port}`, `http://localhost:${provider.port}`],
      github: ["https://api.github.com"],
      tenant: ["https://acme.example.com"],
    },
    forbidden: bystanders.map(({ authority }) => authority),
  };
}

async function checkUrl(bench: Bench, places: UrlPlaces, dns: FakeDns, input: UrlInput, worker: Worker): Promise<void> {
  const allowed = allowedFrom(places, input);
  for (const surface of SURFACES) {
    const { providerName } = input;
    const call = JSON.stringify({ url: input.url, method: "GET" });
    const answer = await bench.send(surface, { providerName, userId: worker.userId, call });
    const requests = bench.provider.take(worker.token);
    // Text that UTF-8 cannot hold is no string to protobuf.
    if (surface === "Connect" && !input.url.isWellFormed() && isUndecodable(answer)) continue;
    const row = rowFrom(surface, answer);
    if (allowed === undefined) {
      mustBeRefused(row, surface);
      mustHold(requests.length === 0, `${surface} sent a request for a refused url`);
    } else if (providerName === "wire") {
      mustHold(row["pincStatus"] === "success", `${surface} did not perform an allowed url: ${row["errorType"]}`);
      const [request, ...more] = requests;
      mustHold(request !== undefined && more.length === 0, `${surface} did not send exactly one request`);
      mustHold(fieldValue(request.fields, "host") === allowed.authority, `${surface} sent another Host`);
      mustHold(request.target === allowed.path, `${surface} sent ${request.target} for ${allowed.path}`);
    } else {
      mustHold(row["errorType"] === "PROVIDER_UNREACHABLE", `${surface} answered ${row["errorType"]} without a DNS`);
      mustHold(dns.asked.has(allowed.authority), `${surface} did not ask for ${allowed.authority}`);
    }
  }
  await checkPassed(bench, places, input, worker);
}

/** The same url in the provider's own form: it is refused, or goes out byte for byte to the host that it names. */
async function checkPassed(bench: Bench, places: UrlPlaces, { providerName, url }: UrlInput, worker: Worker) {
  const target = passedTarget(providerName, url);
  if (target === undefined) return;
  const call = JSON.stringify({ url, method: "GET" });
  const row = rowFrom("via", await bench.send("via", { providerName, userId: worker.userId, call }));
  const requests = bench.provider.take(worker.token);
  const [, host = "", path = ""] = /^\/via\/[^/]*\/([^/?#]*)(.*)$/s.exec(target) ?? [];
  if (!isNamed(places.allowed[providerName] ?? [], host.toLowerCase()) || isRefusal(row)) {
    mustBeRefused(row, "via");
    mustHold(requests.length === 0, "via sent a request for a refused url");
    mustHold(!isNamed(places.allowed[providerName] ?? [], host) || !PLAIN_TARGET.test(path), "via refused a plain url");
  } else if (providerName === "wire") {
    mustHold(row["pincStatus"] === "success", `via did not perform an allowed url: ${row["errorType"]}`);
    const [request, ...more] = requests;
    mustHold(request !== undefined && more.length === 0, "via did not send exactly one request");
    mustHold(fieldValue(request.fields, "host") === host.toLowerCase(), "via sent another Host");
    const written = path.startsWith("/") ? path : `/${path}`;
    mustHold(request.target === written, `via sent ${request.target} for ${written}`);
  } else {
    mustHold(row["errorType"] === "PROVIDER_UNREACHABLE", `via answered ${row["errorType"]} without a DNS`);
  }
}

/** What no parser of urls changes. */
const PLAIN_TARGET = /^(?:\/[\w~-]+)*\/?(?:\?[\w=&~-]*)?$/;

/** Whether a host is that of one of these origins, in so many letters. */
function isNamed(origins: readonly string[], host: string): boolean {
  return origins.some((origin) => {
    const authority = origin.slice(origin.indexOf("//") + 2);
    return host === authority || (origin.startsWith("https:") && host === `${authority}:443`);
  });
}

function mustBeRefused(row: FuzzRow, surface: string): void {
  const told = row["errorType"] ?? row["statusCode"];
  mustHold(isRefusal(row), `${surface} answered ${told} for a url that is not allowed`);
}

function isRefusal({ errorType, statusCode }: FuzzRow): boolean {
  return (
    (errorType === "URL_NOT_ALLOWED" && statusCode === 403) || (errorType === "CALL_FORMAT_ERROR" && statusCode === 400)
  );
}

/** Where an allowed url leads; undefined for others. What the text says and what the relay decides must agree. */
function allowedFrom(places: UrlPlaces, { providerName, url, expect }: UrlInput) {
  const origin = plainOrigin(places.allowed[providerName] ?? [], url);
  const decision = decideEgress(url, JUDGED.get(providerName) ?? wireProvider(places));
  const isAllowed = decision.result === "allow" && (decision.parameters?.["tenant"] ?? "acme") === "acme";
  mustHold(!isAllowed || origin !== undefined, "the relay allows a url that does not plainly name an allowed origin");
  mustHold(isAllowed || origin === undefined || isOdd(url), "the relay refuses a plain url of an allowed origin");
  mustHold(expect === undefined || (expect === "accept") === isAllowed, `the corpus says ${expect}`);
  if (!isAllowed || origin === undefined) return undefined;
  mustHold(decision.origin === origin && new URL(url).origin === origin, "origins differ");
  return { authority: origin.slice(origin.indexOf("//") + 2), path: decision.path };
}

const JUDGED: ReadonlyMap<string, Provider> = new Map([
  ["github", providerFrom({ apiOrigins: ["https://api.github.com", "https://uploads.github.com"] })],
  ["tenant", providerFrom({ apiOrigins: ["https://{tenant}.example.com"] })],
]);

function wireProvider({ allowed }: UrlPlaces): Provider {
  return providerFrom({ apiOrigins: allowed["wire"] ?? [] }, true);
}

/** The origin that a url names in so many letters, whatever follows it. */
function plainOrigin(origins: readonly string[], url: string): string | undefined {
  const head = /^https?:\/\/[\w.:-]+(?=[/?#]|$)/i.exec(url)?.[0].toLowerCase();
  return origins.find((origin) => head === origin || (!/:\d/.test(origin) && head === `${origin}:443`));
}

/** What may be refused although the origin is plain: length, control characters, half a surrogate, outer spaces, `\`. */
function isOdd(url: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose
  return url.length > 4_000 || /[\0-\x1f\x7f-\x9f\\]|^ | $|\p{Surrogate}/u.test(url);
}

/** An allowed name that resolves to an address that is not (threats N08); loopback is allowed to tests. */
async function checkAddresses(bench: Bench, dns: FakeDns): Promise<Exploration> {
  const addresses = [...SPECIAL_IPV4, ...SPECIAL_IPV6].filter((address) => !/^127\.|^::1$/.test(address));
  const [worker] = bench.workers as [Worker];
  const call = JSON.stringify({ url: `https://${RESOLVED_NAME}/`, method: "GET" });
  return exploreList(
    addresses,
    async (address) => {
      dns.address = address;
      const answer = await bench.send("REST", { providerName: "resolved", userId: worker.userId, call });
      const text = String(rowFrom("REST", answer)["inernalError"]);
      mustHold(text.includes("an address that is not allowed"), `dialled ${address}: ${text}`);
    },
    1,
  );
}
