import { toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { CallResponseSchema, RelayService } from "../../gen/relay/v1/relay_pb.js";
import { postRest, type ScenarioCall } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { below, createRandom, type Random } from "../support/random.js";
import { type LabelProvider, startLabelProvider } from "./label-provider.js";

/** How large the matrix is. */
export interface TenancySize {
  readonly applications: number;
  readonly users: number;
  readonly providers: number;
  readonly calls: number;
  /** Calls at once. */
  readonly concurrency: number;
  readonly seed: number;
}

/** What came of it. */
export interface TenancyResult {
  readonly connections: number;
  readonly calls: number;
  /** Calls for a user who is connected in another application only; they are among `calls`. */
  readonly strangers: number;
  readonly mismatches: readonly string[];
  readonly seconds: number;
}

interface Bed {
  readonly harness: Harness;
  /** Two origins for all providers, so that some share sockets and some do not. */
  readonly origins: readonly LabelProvider[];
  readonly applications: readonly TestApplication[];
}

/**
 * Applications with the same user ids, connected to the same providers, each with a token of its own: every call must
 * carry the token of exactly its application, user and provider, and give its caller its own answer (threats T08, T09).
 */
export async function runTenancy(size: TenancySize): Promise<TenancyResult> {
  const labels = new Map<string, string>();
  const origins = [await startLabelProvider(labels), await startLabelProvider(labels)];
  const providers = Array.from({ length: size.providers }, (_, at) => ({
    name: `p${at}`,
    apiOrigins: [originOf(origins, at)],
  }));
  const harness = await startHarness({ providers, onLogLine: () => {} });
  try {
    const applications = await connectAll(harness, size, labels);
    const startedAt = performance.now();
    const counted = await callAll({ harness, origins, applications }, size);
    const seconds = (performance.now() - startedAt) / 1000;
    return { connections: labels.size, calls: size.calls, ...counted, seconds };
  } finally {
    await harness.close();
    for (const origin of origins) await origin.close();
  }
}

function originOf(origins: readonly LabelProvider[], provider: number): string {
  return (origins[provider % origins.length] as LabelProvider).origin;
}

/** Every user at every provider in every application, and in each application one user whom no other has. */
async function connectAll(
  harness: Harness,
  { applications, users, providers }: TenancySize,
  labels: Map<string, string>,
): Promise<TestApplication[]> {
  const created: TestApplication[] = [];
  for (let at = 0; at < applications; at++) {
    const application = await harness.createApplication();
    created.push(application);
    const userIds = [...Array.from({ length: users }, (_, user) => `u${user}`), `only-${at}`];
    for (const userId of userIds) {
      for (let provider = 0; provider < providers; provider++) {
        const token = await harness.connect(application, userId, { providerName: `p${provider}` });
        labels.set(token, labelOf(at, userId, provider));
      }
    }
  }
  return created;
}

function labelOf(application: number, userId: string, provider: number): string {
  return `application ${application}, ${userId}, p${provider}`;
}

const SURFACES = ["rest", "grpc", "via"] as const;

interface Planned {
  readonly application: number;
  readonly userId: string;
  readonly provider: number;
  readonly isStranger: boolean;
  readonly surface: (typeof SURFACES)[number];
  readonly payload: { readonly marker: string; readonly ms: number; readonly size: number };
}

function plan(random: Random, at: number, { applications, users, providers }: TenancySize): Planned {
  const application = below(random, applications);
  const isStranger = below(random, 20) === 0;
  const stranger = `only-${(application + 1 + below(random, applications - 1)) % applications}`;
  return {
    application,
    userId: isStranger ? stranger : `u${below(random, users)}`,
    provider: below(random, providers),
    isStranger,
    surface: SURFACES[below(random, SURFACES.length)] ?? "rest",
    payload: { marker: `marker-${at}`, ms: below(random, 4), size: below(random, 3) === 0 ? below(random, 20_000) : 0 },
  };
}

async function callAll(bed: Bed, size: TenancySize): Promise<Pick<TenancyResult, "strangers" | "mismatches">> {
  const random = createRandom(size.seed);
  const perform = createPerform(bed);
  const mismatches: string[] = [];
  let strangers = 0;
  let next = 0;
  const work = async () => {
    while (next < size.calls) {
      const planned = plan(random, next++, size);
      if (planned.isStranger) strangers++;
      const problem = problemOf(bed, planned, await perform(planned));
      if (problem !== undefined) mismatches.push(problem);
    }
  };
  await Promise.all(Array.from({ length: size.concurrency }, work));
  return { strangers, mismatches };
}

interface Answered {
  readonly errorType: string;
  readonly data: unknown;
}

function createPerform({ harness, origins, applications }: Bed): (planned: Planned) => Promise<Answered> {
  const client = createClient(RelayService, createGrpcTransport({ baseUrl: harness.url }));
  return async ({ application, userId, provider, surface, payload }) => {
    const call = { url: `${originOf(origins, provider)}/`, method: "POST", payload };
    const { publicKey } = applications[application] as TestApplication;
    const request = { providerName: `p${provider}`, userId, publicKey, call };
    if (surface === "via") return passedThrough(harness.url, request);
    return surface === "rest"
      ? answeredFrom(JSON.parse((await postRest(harness.url, request)).text))
      : answeredFrom(toJson(CallResponseSchema, await client.call(request)));
  };
}

async function passedThrough(
  relayUrl: string,
  { providerName, userId, publicKey, call }: ScenarioCall & { readonly call: { url: string; payload: object } },
): Promise<Answered> {
  const answer = await fetch(`${relayUrl}/via/${providerName}/${new URL(call.url).host}/`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-relay-public-key": publicKey, "x-relay-user-id": userId },
    body: JSON.stringify(call.payload),
  });
  return { errorType: answer.headers.get("x-relay-error") ?? "", data: await answer.json() };
}

function answeredFrom(envelope: unknown): Answered {
  const [row] = (envelope as { rows: Array<{ errorType?: string; data?: unknown }> }).rows;
  return { errorType: row?.errorType ?? "", data: row?.data };
}

/** What is wrong with an answer, or with what the provider saw. */
function problemOf({ origins }: Bed, planned: Planned, { errorType, data }: Answered): string | undefined {
  const { application, userId, provider, isStranger, payload } = planned;
  const seen = origins.flatMap((origin) => origin.seen.get(payload.marker) ?? []);
  const expected = isStranger ? [] : [labelOf(application, userId, provider)];
  const told = `${payload.marker} (${planned.surface}): expected ${expected}`;
  if (seen.join() !== expected.join()) return `${told}; the provider saw ${seen}`;
  if (isStranger) return errorType === "INVALID_OAUTHID" ? undefined : `${told}; answered ${errorType || "success"}`;
  const { label, marker, filling } = (data ?? {}) as Readonly<Record<string, unknown>>;
  const isOwn = label === expected[0] && marker === payload.marker && String(filling).length === payload.size;
  return isOwn ? undefined : `${told}; answered ${errorType} ${marker} of ${label}`;
}
