import { createRequire } from "node:module";
import type * as undici from "undici";

const require = createRequire(import.meta.url);

/*
 * What this folder uses of undici. Its index loads `fetch()`, caches, WebSocket and more besides: some 80 modules that
 * nothing here calls, and 7 MiB of each process at rest (Node.js 20). Its version is fixed in package.json.
 */

/** Sends requests over one socket. */
export const Client = require("undici/lib/dispatcher/client.js") as typeof undici.Client;
export type Client = undici.Client;

/** Opens sockets, with TLS or without. */
export const buildConnector = require("undici/lib/core/connect.js") as typeof undici.buildConnector;

/** The errors that these two fail with. */
export const errors = require("undici/lib/core/errors.js") as typeof undici.errors;
