import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createBreaker, createClientHolds } from "../../src/oauth/breaker.js";
import type { Connection, ConnectionKey } from "../../src/oauth/connection.js";
import type { StoredOAuthClient } from "../../src/oauth/oauth-client.js";
import type { Spool } from "../../src/oauth/peers.js";
import { createRefresher } from "../../src/oauth/refresher.js";
import type { TokenEndpointAnswer } from "../../src/oauth/token-answer.js";
import {
  applicationForTest,
  connectionForTest,
  createStoreFolder,
  MEMORY,
  NOW,
  type StoreFolder,
} from "../store/store-for-test.js";
import { thin } from "../support/long.js";
import { putOAuthClient } from "../support/put-oauth-client.js";
import { refreshTargetForTest } from "./refresh-target-for-test.js";
import { sealerForTest } from "./sealer-for-test.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const PROVIDER = "p";
const sealer = sealerForTest();

type Answer = Partial<TokenEndpointAnswer> & { readonly text?: string };

const folders: StoreFolder[] = [];
afterAll(() => folders.forEach((folder) => void folder.remove()));

/** A relay's refreshing over a real store, at times of the test's choice. `answer` says what a user's refresh token gets. */
async function createWorld(
  answer: (userId: string, now: number) => Answer,
  { hasEndpointEach = false }: { readonly hasEndpointEach?: boolean } = {},
) {
  const folder = createStoreFolder(MEMORY);
  folders.push(folder);
  let now = NOW;
  const clock = () => now;
  const store = folder.open({ now: clock });
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const client: StoredOAuthClient = {
    id: "c",
    applicationId: application.id,
    providerName: PROVIDER,
    clientId: "id",
    clientSecret: undefined,
    scope: "",
    originParameters: {},
    updatedAt: NOW - DAY_MS,
  };
  await putOAuthClient(store.oauthClients, client);
  let asked = 0;
  const users = new Map<string, string>();
  const registered = async () => (await store.oauthClients.find(application.id, PROVIDER)) as StoredOAuthClient;
  const endpointOf = (id: string) => (hasEndpointEach ? id : "e");
  const createProcess = (owner: string) =>
    createRefresher({
      connections: store.connections,
      sealer,
      breaker: createBreaker(),
      clients: createClientHolds(),
      noteClientRefused: store.oauthClients.noteRefused,
      spool: { owner, keep: () => false, drop: () => {} } as unknown as Spool,
      requestTimeoutMs: 1000,
      now: clock,
      random: () => 0.5,
      onFault: (error) => {
        throw error;
      },
      placeFor: async ({ id }) => ({ endpoint: endpointOf(id), client: await registered() }),
      targetFor: async ({ id }) => ({
        ...refreshTargetForTest({
          connectionId: id,
          tokenEndpoint: endpointOf(id),
          client: { clientId: "id", clientSecret: undefined },
        }),
        refreshEndedErrors: new Set(["listed_error"]),
        registration: await registered(),
      }),
      send: async ({ connectionId }) => {
        asked++;
        const { text = "", ...rest } = answer(users.get(connectionId) ?? "", now);
        return { statusCode: 200, retryAfter: "", body: Buffer.from(text), ...rest };
      },
      onRefresh: () => {},
      onRevocation: () => {},
    });
  const refresher = createProcess("one");
  const keyOf = (userId: string): ConnectionKey => ({ applicationId: application.id, userId, providerName: PROVIDER });
  const row = async (userId: string) => (await store.connections.find(keyOf(userId))) as Connection;
  return {
    store,
    application,
    client,
    row,
    createProcess,
    asked: () => asked,
    now: clock,
    advance: (ms: number) => {
      now += ms;
    },
    async connect(userId: string) {
      const made = connectionForTest(sealer, keyOf(userId), { refresh_token: "r" });
      users.set(made.id, userId);
      await store.connections.put(made, now);
    },
    /** What a call for this user comes to: `granted`, or the reason of the error. */
    async use(userId: string, by = refresher): Promise<string> {
      const current = await row(userId);
      // A call refuses it before it asks for a refresh.
      if (current.state !== "ACTIVE") return "REAUTHORIZATION_REQUIRED";
      return by.refresh(current).then(
        () => "granted",
        (error: { reason: string }) => error.reason,
      );
    },
  };
}

const GRANTED: Answer = { text: '{"access_token":"a","refresh_token":"r","expires_in":3600}' };
const error = (statusCode: number, code: string): Answer => ({ statusCode, text: JSON.stringify({ error: code }) });

/** How a connection stands: its state, or the last answer to a refresh that fails. */
async function standing({ row }: Awaited<ReturnType<typeof createWorld>>, userId: string): Promise<string> {
  const { state, stateReason, trouble, lastErrorClass } = await row(userId);
  if (state !== "ACTIVE") return `ended: ${stateReason}`;
  if (trouble === undefined) return "well";
  return trouble.toldAt === undefined ? `failing: ${lastErrorClass}` : `told: ${lastErrorClass}`;
}

const ends = { minutes: "ended: invalid_grant", hours: "ended: invalid_grant", days: "ended: invalid_grant" };
const proves = (word: string) => ({ minutes: `failing: ${word}`, hours: `told: ${word}`, days: "ended: refused" });
const stays = (word: string) => ({ minutes: `failing: ${word}`, hours: `told: ${word}`, days: `told: ${word}` });
const well = { minutes: "well", hours: "well", days: "well" };

/** Answers of a token endpoint, and what they come to while other users of the same client are refreshed. */
const ANSWERS: ReadonlyArray<readonly [name: string, answer: Answer, standing: ReturnType<typeof stays>]> = [
  ["tokens", GRANTED, well],
  ["tokens with status 201", { ...GRANTED, statusCode: 201 }, well],
  ["tokens as a form", { text: "access_token=a&token_type=bearer" }, well],
  ["invalid_grant", error(400, "invalid_grant"), ends],
  ["invalid_grant with status 401", error(401, "invalid_grant"), ends],
  ["invalid_grant with status 403", error(403, "invalid_grant"), ends],
  ["invalid_grant with status 200", error(200, "invalid_grant"), ends],
  ["invalid_grant as a form", { statusCode: 400, text: "error=invalid_grant" }, ends],
  ["invalid_grant in an object", { statusCode: 400, text: '{"error":{"type":"invalid_grant"}}' }, ends],
  ["a code that the definition lists", error(400, "listed_error"), ends],
  ["a listed code with status 200", error(200, "listed_error"), ends],
  ["BAD_REFRESH_TOKEN of no definition", error(400, "BAD_REFRESH_TOKEN"), proves("unknown_error")],
  ["invalid_code with status 200", error(200, "invalid_code"), proves("unknown_error")],
  ["interaction_required", error(400, "interaction_required"), proves("interaction_required")],
  ["consent_required", error(400, "consent_required"), proves("consent_required")],
  ["login_required", error(400, "login_required"), proves("login_required")],
  ["unauthorized_client", error(400, "unauthorized_client"), proves("unauthorized_client")],
  ["unauthorized_client with status 403", error(403, "unauthorized_client"), proves("unauthorized_client")],
  ["invalid_request", error(400, "invalid_request"), proves("invalid_request")],
  ["invalid_scope", error(400, "invalid_scope"), proves("invalid_scope")],
  ["unsupported_grant_type", error(400, "unsupported_grant_type"), proves("unsupported_grant_type")],
  ["access_denied", error(403, "access_denied"), proves("access_denied")],
  ["a code that is a number", { statusCode: 400, text: '{"error":{"code":190}}' }, proves("unknown_error")],
  ["invalid_client for this user alone", error(401, "invalid_client"), proves("invalid_client")],
  ["401 without a body", { statusCode: 401 }, proves("status_401")],
  ["401 with JSON that is no error", { statusCode: 401, text: '{"message":"no"}' }, proves("status_401")],
  ["400 without a body", { statusCode: 400 }, proves("status_400")],
  ["401 with HTML", { statusCode: 401, text: "<html>sign in</html>" }, stays("unreadable")],
  ["400 with HTML of a firewall", { statusCode: 400, text: "<html>blocked</html>" }, stays("unreadable")],
  ["400 with HTML that names invalid_grant", { statusCode: 400, text: "<p>invalid_grant</p>" }, stays("unreadable")],
  ["403 with HTML", { statusCode: 403, text: "<html>" }, stays("unreadable")],
  ["403 without a body", { statusCode: 403 }, stays("unreadable")],
  ["403 rate_limit_exceeded", error(403, "rate_limit_exceeded"), stays("rate_limited")],
  ["429", { statusCode: 429 }, stays("rate_limited")],
  ["429 that names invalid_grant", error(429, "invalid_grant"), stays("rate_limited")],
  ["slow_down", error(400, "slow_down"), stays("rate_limited")],
  ["temporarily_unavailable", error(400, "temporarily_unavailable"), stays("server_error")],
  ["500", { statusCode: 500 }, stays("server_error")],
  ["500 that names invalid_grant", error(500, "invalid_grant"), stays("server_error")],
  ["502 with HTML", { statusCode: 502, text: "<html>" }, stays("server_error")],
  ["503", { statusCode: 503 }, stays("server_error")],
  ["408", { statusCode: 408 }, stays("server_error")],
  ["404", { statusCode: 404 }, stays("unreadable")],
  ["302", { statusCode: 302 }, stays("unreadable")],
  ["200 with HTML", { text: "<html>" }, stays("unreadable")],
  ["200 without a body", { text: "" }, stays("unreadable")],
  ["200 without tokens", { text: "{}" }, stays("unreadable")],
  ["200 with broken JSON", { text: '{"access_token":"a' }, stays("unreadable")],
];

/** When connections are used: often at first, or less than daily from the second day on. Milliseconds from the start. */
const OFTEN = [0, 5, 10, 14, 30, 60, 61, 120, 180, 360, 720, 1080, 1440, 1450, 1800, 2160, 2880, 4320].map(minutes);
const SELDOM = [0, 2 * 60, 30 * 60, 60 * 60, 90 * 60, 120 * 60].map(minutes);

describe.each([
  ["often", OFTEN],
  ["less than daily", SELDOM],
])("a connection that is used %s", (_often, times) => {
  /** How each user's connection stood after each time; users have the names of their answers. */
  const standings = new Map<string, string[]>();

  beforeAll(async () => {
    const answers = new Map(ANSWERS.map(([name, answer]) => [name, answer]));
    const world = await createWorld((userId) => answers.get(userId) ?? GRANTED, { hasEndpointEach: true });
    const users = [...answers.keys()];
    for (const userId of ["well", ...users]) await world.connect(userId);
    for (const ms of times) {
      world.advance(NOW + ms - world.now());
      expect(await world.use("well")).toBe("granted");
      for (const userId of users) {
        await world.use(userId);
        standings.set(userId, [...(standings.get(userId) ?? []), await standing(world, userId)]);
      }
    }
  }, 120_000);

  it.each(ANSWERS)("stands as it should after minutes, hours and days of %s", (name, _answer, expected) => {
    const all = standings.get(name) ?? [];
    const at = (ms: number) => all[times.findLastIndex((time) => time <= ms)];
    expect(at(15 * MINUTE_MS)).toBe(expected.minutes);
    expect(at(3 * HOUR_MS)).toBe(expected.hours);
    expect(all.at(-1)).toBe(expected.days);
  });
});

function minutes(count: number): number {
  return count * MINUTE_MS;
}

describe("what all users of a client get", () => {
  /** Words that would end one user's connection. */
  const ALIKE = ANSWERS.filter(([name]) => /^(?:invalid_grant|unauthorized_client|BAD_REFRESH|401 without)/.test(name));
  const users = Array.from({ length: 8 }, (_, at) => `u${at}`);

  it.each(thin(ALIKE, 4))(
    "ends none but the first that came before it was known, in two days of %s",
    async (_name, answer, { minutes }) => {
      let isBad = true;
      const world = await createWorld(() => (isBad ? answer : GRANTED));
      for (const userId of users) await world.connect(userId);
      for (let passedMs = 0; passedMs < 2 * DAY_MS; passedMs += 6 * HOUR_MS) {
        for (const userId of users) await world.use(userId);
        world.advance(HOUR_MS);
      }
      isBad = false;
      const after = await Promise.all(users.map((userId) => world.use(userId)));
      const atFirst = minutes.startsWith("ended") ? 3 : 0;
      expect(after.filter((outcome) => outcome !== "granted")).toHaveLength(atFirst);
    },
  );

  it("ends all of many who were refused at once, each at its first try after another user's refresh", async () => {
    const world = await createWorld((userId) => (userId === "well" ? GRANTED : error(400, "invalid_grant")));
    for (const userId of ["well", ...users]) await world.connect(userId);
    const first = [];
    for (const userId of users) first.push(await world.use(userId));
    expect(first).toEqual([
      ...Array(3).fill("REAUTHORIZATION_REQUIRED"),
      ...Array(users.length - 3).fill("REFRESH_UNAVAILABLE"),
    ]);
    world.advance(2 * MINUTE_MS);
    for (const userId of users.slice(3)) {
      expect(await world.use("well")).toBe("granted");
      expect(await world.use(userId)).toBe("REAUTHORIZATION_REQUIRED");
      world.advance(1);
    }
  });

  it("ends none when the operator has stored another client, whose tokens these are not", async () => {
    let isBad = false;
    const world = await createWorld(() => (isBad ? error(400, "invalid_grant") : GRANTED));
    for (const userId of users) await world.connect(userId);
    for (const userId of users) await world.use(userId);
    isBad = true;
    world.advance(HOUR_MS);
    await putOAuthClient(world.store.oauthClients, { ...world.client, clientId: "wrong", updatedAt: world.now() });
    world.advance(MINUTE_MS);
    for (const userId of users) expect(await world.use(userId)).toBe("REFRESH_UNAVAILABLE");
    isBad = false;
    await putOAuthClient(world.store.oauthClients, { ...world.client, updatedAt: world.now() });
    for (const userId of users) expect(await world.use(userId)).toBe("granted");
  });
});

describe("a client that the provider refuses", () => {
  it("is shown to it twice a minute, by one connection after the other, and told to the operator", async () => {
    const world = await createWorld(() => error(401, "invalid_client"));
    const users = Array.from({ length: 20 }, (_, at) => `u${at}`);
    for (const userId of users) await world.connect(userId);
    for (let second = 0; second < 600; second++) {
      expect(await world.use(users[second % users.length] ?? "")).toBe("PROVIDER_MISCONFIGURED");
      world.advance(1000);
    }
    expect(world.asked()).toBeLessThanOrEqual(21);
    expect(await world.store.oauthClients.find(world.application.id, PROVIDER)).toHaveProperty("refusedSince", NOW);
  });

  it("is told to callers as well when the store cannot take that down for the operator", async () => {
    const world = await createWorld(() => error(401, "invalid_client"));
    vi.spyOn(world.store.oauthClients, "noteRefused").mockRejectedValueOnce(new Error("locked"));
    await world.connect("ada");
    expect(await world.use("ada", world.createProcess("two"))).toBe("PROVIDER_MISCONFIGURED");
  });

  it("is shown again at once, in every process, when the operator has changed it", async () => {
    let isBad = true;
    const world = await createWorld(() => (isBad ? error(401, "invalid_client") : GRANTED));
    const peer = world.createProcess("two");
    for (const userId of ["a", "b", "c"]) await world.connect(userId);
    for (const by of [undefined, peer]) expect(await world.use(by ? "b" : "a", by)).toBe("PROVIDER_MISCONFIGURED");
    isBad = false;
    expect([await world.use("a"), await world.use("c"), await world.use("c", peer)]).toEqual([
      "PROVIDER_MISCONFIGURED",
      "PROVIDER_MISCONFIGURED",
      "PROVIDER_MISCONFIGURED",
    ]);
    await putOAuthClient(world.store.oauthClients, { ...world.client, updatedAt: world.now() });
    expect([await world.use("a"), await world.use("b", peer), await world.use("c")]).toEqual(Array(3).fill("granted"));
    const { refusedSince } = (await world.store.oauthClients.find(world.application.id, PROVIDER)) as StoredOAuthClient;
    expect(refusedSince).toBeUndefined();
  });

  it("is found good by another connection within a minute when it was refused for one alone", async () => {
    const world = await createWorld((userId) => (userId === "bad" ? error(401, "invalid_client") : GRANTED));
    for (const userId of ["bad", "well", "other"]) await world.connect(userId);
    expect(await world.use("bad")).toBe("PROVIDER_MISCONFIGURED");
    expect(await world.use("well")).toBe("PROVIDER_MISCONFIGURED");
    world.advance(MINUTE_MS);
    expect(await world.use("well")).toBe("granted");
    world.advance(10 * MINUTE_MS);
    expect(await world.use("bad")).toBe("PROVIDER_MISCONFIGURED");
    expect(await world.use("other")).toBe("granted");
  });
});

describe("a token endpoint that answers 500 for ten minutes", () => {
  // Few connections fail often each, and wait long; many seldom.
  it.each(
    thin([
      [10, 100],
      [1000, 20],
    ]),
  )(
    "is asked at most 200 times, and %i connections are refreshed in a minute afterwards, with a call each %i ms",
    async (count, stepMs) => {
      const users = Array.from({ length: count }, (_, at) => `u${at}`);
      let recoversAt = 0;
      const world = await createWorld((_userId, now) => (now < recoversAt ? { statusCode: 500 } : GRANTED));
      for (const userId of users) await world.connect(userId);
      recoversAt = world.now() + 10 * MINUTE_MS;
      const waiting = new Set(users);
      /** One call: those of users whose token is good by then ask for no refresh. */
      const step = async (at: number) => {
        const userId = users[at % users.length] ?? "";
        if (waiting.has(userId) && (await world.use(userId)) === "granted") waiting.delete(userId);
        world.advance(stepMs);
      };
      let at = 0;
      while (world.now() < recoversAt) await step(at++);
      expect(waiting.size).toBe(users.length);
      expect(world.asked()).toBeLessThanOrEqual(200);
      while (waiting.size > 0 && world.now() < recoversAt + MINUTE_MS) await step(at++);
      expect([...waiting]).toEqual([]);
    },
    60_000,
  );
});
