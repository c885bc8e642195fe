import { once } from "node:events";
import net from "node:net";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers, postRest } from "../support/callers.js";
import { lintExposition, totalOf } from "../support/exposition.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { scrape, scrapeText } from "../support/scrape.js";
import { createStreamCallers } from "../support/stream-callers.js";

let harness: Harness;
let application: TestApplication;
/** Answers when a test does. */
let silent: RawProvider;

beforeAll(async () => {
  silent = await startRawProvider(() => {});
  harness = await startHarness({
    env: { RELAY_MAX_IN_FLIGHT: "2", RELAY_DEADLINE_MS: "5000" },
    definitionsFor: (origin) => [
      { name: "named", aliases: ["called"], apiOrigins: [origin] },
      { name: "away", apiOrigins: ["http://127.0.0.1:1"] },
      { name: "silent", apiOrigins: [silent.origin] },
    ],
  });
  application = await harness.createApplication();
  await harness.putClient(application);
  await harness.connect(application, "ada");
  for (const providerName of ["named", "away", "silent"]) await harness.connect(application, "ada", { providerName });
});

afterAll(async () => {
  await harness.close();
  await silent.close();
});

function callOf(providerName: string, path: string, userId = "ada") {
  const url = path.startsWith("/") ? harness.sandbox.origin + path : path;
  return { providerName, userId, publicKey: application.publicKey, call: { url, method: "GET" } };
}

const call = (providerName: string, path: string, userId?: string) =>
  postRest(harness.url, callOf(providerName, path, userId));

/** What grew while something was done. */
async function grown(work: () => Promise<unknown>) {
  const before = await scrape(harness.adminUrl);
  await work();
  const after = await scrape(harness.adminUrl);
  return (name: string, labels: Readonly<Record<string, string>> = {}) =>
    totalOf(after, name, labels) - totalOf(before, name, labels);
}

describe("GET /metrics", () => {
  const ask = (method: "GET" | "HEAD" | "POST", headers = {}, url = harness.adminUrl) =>
    request(`${url}/metrics`, { method, headers });

  it("is for holders of an admin token, whatever their role, and only on their port", async () => {
    const unknown = await ask("GET");
    expect([unknown.statusCode, unknown.headers["www-authenticate"]]).toEqual([401, expect.stringMatching(/^Bearer/)]);
    expect(await unknown.body.text()).not.toContain("relay_");
    expect((await ask("GET", { authorization: `Bearer ${ADMIN_TOKENS.readOnly}x` })).statusCode).toBe(401);
    for (const token of Object.values(ADMIN_TOKENS)) {
      const answer = await ask("GET", { authorization: `Bearer ${token}` });
      expect(answer).toMatchObject({
        statusCode: 200,
        headers: {
          "content-type": expect.stringMatching(/^text\/plain; version=0\.0\.4/),
          "cache-control": "no-store",
        },
      });
      expect(await answer.body.text()).toContain("relay_build_info{version=");
    }
    expect((await ask("GET", { authorization: `Bearer ${ADMIN_TOKENS.operator}` }, harness.url)).statusCode).toBe(404);
  });

  it("is read with GET and HEAD alone", async () => {
    const authorization = { authorization: `Bearer ${ADMIN_TOKENS.readOnly}` };
    expect(await ask("POST", authorization)).toMatchObject({ statusCode: 405, headers: { allow: "GET, HEAD" } });
    const head = await ask("HEAD", authorization);
    expect([head.statusCode, await head.body.text()]).toEqual([200, ""]);
  });
});

describe("calls", () => {
  it("are counted by provider, surface, status and error", async () => {
    const ended = await grown(async () => {
      for (const [, caller] of createCallers(harness.url)) await caller(callOf("sandbox", "/me"));
      for (const [, caller] of createStreamCallers(harness.url)) await caller(callOf("sandbox", "/me"));
      await call("sandbox", "/status/503");
      await call("called", "/me");
      await call("away", "http://127.0.0.1:1/");
      await call("nobody", "/me");
    });
    const well = { provider: "sandbox", status_class: "2xx", error_type: "none" };
    const bySurface = ["rest", "stream", "connect", "grpc", "grpc-web"].map((surface) => [
      surface,
      ended("relay_calls_total", { ...well, surface }),
    ]);
    expect(bySurface).toEqual([
      ["rest", 1],
      ["stream", 2],
      ["connect", 4],
      ["grpc", 2],
      ["grpc-web", 2],
    ]);
    for (const [labels, count] of [
      [{ provider: "sandbox", status_class: "5xx", error_type: "API_ERROR" }, 1],
      [{ provider: "named", status_class: "2xx", error_type: "none" }, 1],
      [{ provider: "away", status_class: "5xx", error_type: "PROVIDER_UNREACHABLE" }, 1],
      [{ provider: "unknown", status_class: "4xx", error_type: "INVALID_PROVIDER" }, 1],
    ] as const) {
      expect([labels, ended("relay_calls_total", labels)]).toEqual([labels, count]);
    }
    expect(ended("relay_calls_total")).toBe(15);
  });

  it("are measured, split into what the provider took and what the relay added", async () => {
    const took = await grown(async () => {
      await call("sandbox", "/slow?ms=60");
      await call("sandbox", "/slow?ms=60", "nobody");
    });
    const parts = ["", "provider_", "relay_"].map((part) => {
      const name = `relay_call_${part}duration_seconds`;
      return { count: took(`${name}_count`), all: took(`${name}_bucket`, { le: "+Inf" }), sum: took(`${name}_sum`) };
    });
    // The second call asked no provider.
    expect(parts.map(({ count, all }) => [count, all])).toEqual([
      [2, 2],
      [1, 1],
      [2, 2],
    ]);
    const [whole, provider, relay] = parts.map(({ sum }) => sum) as [number, number, number];
    expect(provider).toBeGreaterThanOrEqual(0.055);
    expect(relay).toBeGreaterThan(0);
    // What is left is the wait for the token.
    expect(provider + relay).toBeLessThanOrEqual(whole + 1e-9);
    expect(took("relay_call_provider_duration_seconds_bucket", { le: "0.025" })).toBe(0);
    expect(took("relay_call_provider_duration_seconds_bucket", { le: "30" })).toBe(1);
  });

  it("that are streamed are measured until their head", async () => {
    const [, raw] = createStreamCallers(harness.url)[0] as ReturnType<typeof createStreamCallers>[number];
    let wholeMs = 0;
    const took = await grown(async () => {
      const startedAt = performance.now();
      await raw(callOf("sandbox", "/drip?bytes=4&ms=100"));
      wholeMs = performance.now() - startedAt;
    });
    expect(took("relay_call_duration_seconds_count")).toBe(1);
    expect(took("relay_call_duration_seconds_sum")).toBeLessThan((wholeMs - 250) / 1000);
  });

  it("make no label of anything that a caller chose", async () => {
    const name = "canary-provider";
    await call(name, "/me", "canary-user");
    await request(`${harness.url}/oauth/method/${name}/call?public_key=canary-key`, { method: "POST", body: "{}" });
    await call("sandbox", "/status/799?canary=1");
    const text = await scrapeText(harness.adminUrl);
    expect(text).not.toMatch(/canary/i);
    for (const secret of [application.publicKey, application.id, "ada"]) expect(text).not.toContain(secret);
  });

  it("are gauged while they are under way, and counted when there is no room for them", async () => {
    const held = [call("silent", `${silent.origin}/`), call("silent", `${silent.origin}/`)];
    await silent.seen(2);
    const full = await scrape(harness.adminUrl);
    expect(totalOf(full, "relay_calls_in_flight")).toBe(2);
    expect(totalOf(full, "relay_max_calls_in_flight")).toBe(2);
    expect(totalOf(full, "relay_buffered_bytes")).toBeGreaterThan(0);
    const refused = await grown(() => call("sandbox", "/me"));
    expect(refused("relay_rejected_total", { reason: "in_flight" })).toBe(1);
    expect(refused("relay_calls_total", { error_type: "OVERLOADED" })).toBe(1);
    for (const socket of silent.open) socket.write(answer("{}"));
    await Promise.all(held);
    const free = await scrape(harness.adminUrl);
    expect([totalOf(free, "relay_calls_in_flight"), totalOf(free, "relay_buffered_bytes")]).toEqual([0, 0]);
  });
});

describe("what else is measured", () => {
  it("refreshes, by how they ended", async () => {
    const refreshToken = harness.sandbox.issueToken().refresh_token as string;
    await harness.connect(application, "bob", { refreshToken, expiresAt: 1 });
    await harness.connect(application, "eve", { refreshToken: "CANARY_unknown_refresh_token", expiresAt: 1 });
    const ended = await grown(async () => {
      await call("sandbox", "/me", "bob");
      await call("sandbox", "/me", "eve");
    });
    expect(ended("relay_refreshes_total", { provider: "sandbox", outcome: "refreshed" })).toBe(1);
    expect(ended("relay_refreshes_total", { provider: "sandbox", outcome: "ended" })).toBe(1);
    expect(ended("relay_store_duration_seconds_count", { operation: "write" })).toBeGreaterThan(1);
    expect(ended("relay_store_duration_seconds_count", { operation: "read" })).toBeGreaterThan(1);
    expect(ended("relay_store_failures_total")).toBe(0);
  });

  it("faults, by place", async () => {
    const port = Number(new URL(harness.url).port);
    const met = await grown(async () => {
      const socket = net
        .connect(port, "127.0.0.1")
        .on("error", () => {})
        .resume();
      socket.write("nonsense\r\n\r\n");
      await once(socket, "close");
    });
    expect(met("relay_faults_total", { where: "client" })).toBe(1);
  });

  it("nothing that promtool check metrics objects to", async () => {
    expect(lintExposition(await scrapeText(harness.adminUrl))).toEqual([]);
    const wrong = [
      "# HELP a_ms x\n# TYPE a_ms gauge\na_ms 1",
      '# HELP b x\n# TYPE b gauge\nb{quantile="1"} 1',
      "# HELP c x\n# TYPE c counter\nc 1",
      '# HELP d_total x\n# TYPE d_total gauge\nd_total{aB="1"} 1',
    ];
    expect(wrong.map((each) => lintExposition(`${each}\n`).length)).toEqual([1, 1, 1, 2]);
  });

  it("the process, its event loop and its sockets", async () => {
    const samples = await scrape(harness.adminUrl);
    const above = (name: string) => totalOf(samples, name) > 0;
    for (const name of [
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      "process_start_time_seconds",
      "nodejs_heap_size_used_bytes",
      "nodejs_external_memory_bytes",
      "relay_client_connections",
    ]) {
      expect([name, above(name)]).toEqual([name, true]);
    }
    expect(totalOf(samples, "relay_processes")).toBe(1);
    const delays = samples.filter(({ name }) => name === "relay_event_loop_delay_seconds");
    expect(delays.map(({ labels }) => labels["stat"])).toEqual(["p50", "p99", "max"]);
    expect(delays.every(({ value }) => value >= 0)).toBe(true);
  });
});

describe("RELAY_METRICS=off", () => {
  it("answers 404, also to an operator", async () => {
    const quiet = await startHarness({ env: { RELAY_METRICS: "off" } });
    try {
      await expect(scrape(quiet.adminUrl)).rejects.toThrow("404");
    } finally {
      await quiet.close();
    }
  });
});
