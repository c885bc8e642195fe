import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { request } from "undici";
import type { Connection } from "../../src/oauth/connection.js";
import { openToken } from "../../src/oauth/store-answer.js";
import {
  type AuthorizationServer,
  type RegisteredClient,
  startAuthorizationServer,
} from "../support/authorization-server.js";
import { createCallers, type Row } from "../support/callers.js";
import { launchChromium } from "../support/chromium.js";
import { type Harness, type HarnessOptions, startHarness, type TestApplication } from "../support/harness.js";
import { newWatchedPage, type WatchedPage } from "../support/watched-page.js";

/** A relay, a real authorization server behind it, an application's own page, and Chromium in front of all. */
export interface World {
  readonly harness: Harness;
  readonly server: AuthorizationServer;
  readonly browser: Browser;
  readonly application: TestApplication;
  /** How the server knows the relay. */
  readonly client: RegisteredClient;
  /** The application's page that users come back to. */
  readonly redirectUri: string;
  /** A page in a browser of its own: no cookie of any other. */
  newPage(options?: BrowserContextOptions): Promise<WatchedPage>;
  /** Address of the connect page for a user. */
  connectUrl(userId: string, more?: Readonly<Record<string, string>>): string;
  /** One call with the user's connected account. */
  call(userId: string): Promise<Row>;
  connectionOf(userId: string): Promise<Connection | undefined>;
  /** What the application hears of the user's connections: provider, state and why. */
  statesOf(userId: string): Promise<ReadonlyArray<readonly [provider: string, state: string, why: string]>>;
  /** A stored token in the clear, to ask the server about it. */
  tokenOf(userId: string, column: "access_token" | "refresh_token"): Promise<string>;
  close(): Promise<void>;
}

/** Name of the provider that the authorization server stands for. */
export const PROVIDER = "acme";

/** Starts the world; the provider is called `Acme`. */
export async function startWorld(options: HarnessOptions = {}, args: readonly string[] = []): Promise<World> {
  const server = await startAuthorizationServer();
  const applicationPage = await startApplicationPage();
  const harness = await startHarness({
    upstream: { resolve: async () => [{ address: "127.0.0.1", family: 4 }] },
    ...options,
    providers: [server.providerDefinition(PROVIDER, "Acme"), ...(options.providers ?? [])],
  });
  const client = await server.register(`${harness.url}/oauth/callback`);
  const application = await harness.createApplication({
    name: "Example Notes",
    allowedRedirectUris: [applicationPage.url],
  });
  await harness.putClient(application, PROVIDER, client);
  const browser = await launchChromium(args);
  return {
    ...{ harness, server, browser, application, client, redirectUri: applicationPage.url },
    newPage: (context) => newWatchedPage(browser, context),
    ...accessTo(harness, server, application),
    async close() {
      await browser.close();
      await harness.close();
      await Promise.all([server.close(), applicationPage.close()]);
    },
  };
}

function accessTo(harness: Harness, server: AuthorizationServer, { id, publicKey }: TestApplication) {
  const [[, callRest] = fail()] = createCallers(harness.url);
  const connectionOf = (userId: string) =>
    harness.store.connections.find({ applicationId: id, userId, providerName: PROVIDER });
  return {
    connectionOf,
    connectUrl(userId: string, more: Readonly<Record<string, string>> = {}) {
      return `${harness.url}/oauth/connect?${new URLSearchParams({ public_key: publicKey, user_id: userId, ...more })}`;
    },
    call: (userId: string) =>
      callRest({ providerName: PROVIDER, userId, publicKey, call: { url: server.meUrl, method: "GET" } }),
    async statesOf(userId: string) {
      const query = new URLSearchParams({ public_key: publicKey, user_id: userId });
      const { body } = await request(`${harness.url}/oauth/connections?${query}`);
      const { connections } = (await body.json()) as { connections: Array<Record<string, string>> };
      return connections.map(({ providerName = "", state = "", stateReason = "" }) => {
        return [providerName, state, stateReason] as const;
      });
    },
    async tokenOf(userId: string, column: "access_token" | "refresh_token") {
      const connection = (await connectionOf(userId)) ?? fail();
      const sealed = column === "access_token" ? connection.accessToken : (connection.refreshToken ?? fail());
      return openToken(harness.sealer, connection, column, sealed).reveal();
    },
  };
}

async function startApplicationPage() {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end(`<!doctype html><title>Example Notes</title><link rel="icon" href="data:,"><h1>Welcome back</h1>`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}/connected`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function fail(): never {
  throw new Error("what the test is about is not there");
}
