import { createRequire } from "node:module";
import type * as undici from "undici";

const require = createRequire(import.meta.url);

/*
 * The parts of undici that this folder uses. Its index also loads `fetch()`, caches, WebSocket and more: some 80
 * modules that nothing here calls, and 7 MiB of each idle process (Node.js 20). Its version is pinned in package.json.
 */

/** Sends requests over one socket. */
export const Client = require("undici/lib/dispatcher/client.js") as typeof undici.Client;
export type Client = undici.Client;

/** Opens sockets, with TLS or without. */
export const buildConnector = require("undici/lib/core/connect.js") as typeof undici.buildConnector;

/** The errors of these two. */
export const errors = require("undici/lib/core/errors.js") as typeof undici.errors;
