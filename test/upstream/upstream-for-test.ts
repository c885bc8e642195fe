import { stat } from "node:fs";
import { afterEach, expect } from "vitest";
import type { Reason, RelayError } from "../../src/model/errors.js";
import { createUpstream, type UpstreamOptions } from "../../src/upstream/client.js";
import type { Upstream, UpstreamAnswer, UpstreamLimits, UpstreamRequest } from "../../src/upstream/request.js";
import { type Play, type RawProvider, type RawProviderOptions, startRawProvider } from "../support/raw-provider.js";

const closers: Array<() => Promise<void>> = [];

/** A provider that ends with the test. */
export async function provider(play: Play, options?: RawProviderOptions): Promise<RawProvider> {
  const started = await startRawProvider(play, options);
  closers.push(() => started.close());
  return started;
}

/** An upstream that may dial loopback and ends with the test; it does not close idle sockets in between. */
export function upstreamByDefault(options: Partial<UpstreamOptions> = {}): Upstream {
  const created = createUpstream({ allowLoopback: true, keepAliveTimeoutMs: 600_000, ...options });
  closers.push(() => created.close());
  return created;
}

/** One that also reuses sockets at once, and forgets stray answers at once. */
export function upstream(options: Partial<UpstreamOptions> = {}): Upstream {
  return upstreamByDefault({ quietMs: 0, distrustMs: 0, ...options });
}

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A plain GET, but for what a test changes. */
export function get(origin: string, change: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return {
    origin,
    path: "/",
    method: "GET",
    headers: ["authorization", "Bearer canary"],
    body: undefined,
    applicationId: "app",
    connectionId: "one",
    allowPrivateNetwork: false,
    ...change,
  };
}

/** Ends after that many milliseconds; the default is long enough never to matter. */
export function within(timeoutMs = 10_000, signal?: AbortSignal): UpstreamLimits {
  return { deadline: performance.now() + timeoutMs, signal };
}

/** Sends and gives back the body as text. */
export async function textOf(sent: Promise<UpstreamAnswer>): Promise<string> {
  return (await sent).body.concat().toString();
}

/** The RelayError of a call that must fail for this reason; its message must be fit for a caller. */
export async function failureOf(sent: Promise<unknown>, reason: Reason): Promise<RelayError> {
  const error = await sent.then(
    () => undefined,
    (rejected: RelayError) => rejected,
  );
  expect(error).toMatchObject({ name: "RelayError", reason });
  expect(error?.message).toMatch(/^[A-Z][^\n]*[;.][^\n]*\.$/);
  expect(error?.message).not.toMatch(/canary|127\.0\.0\.1|ECONN|HPE_|UND_ERR|socket/);
  return error as RelayError;
}

/** Runs `act` inside the poll phase of the event loop, where the callbacks of files and sockets run. */
export function inPollPhase<T>(act: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    stat(".", () => act().then(resolve, reject));
  });
}

/** Holds the event loop. */
export function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
