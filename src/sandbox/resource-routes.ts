import { ACCOUNT_ROUTES } from "./account-routes.js";
import { createCodingRoutes } from "./coding-routes.js";
import { createContentRoutes } from "./content-routes.js";
import { ECHO_ROUTES } from "./echo-routes.js";
import { ECHO_TOKEN_ROUTES } from "./echo-token-routes.js";
import { createFieldRoutes } from "./field-routes.js";
import type { ResourceRoute } from "./resource.js";
import { STATUS_ROUTES } from "./status-routes.js";
import { TIMING_ROUTES } from "./timing-routes.js";
import { WELL_KNOWN_API_ROUTES } from "./well-known-api-routes.js";

/** The route table of the resource API: everything that takes an access token. `origin` is the sandbox's own. */
export function createResourceRoutes(origin: string): readonly ResourceRoute[] {
  return [
    ...ACCOUNT_ROUTES,
    ...WELL_KNOWN_API_ROUTES,
    ...ECHO_ROUTES,
    ...ECHO_TOKEN_ROUTES,
    ...STATUS_ROUTES,
    ...createFieldRoutes(origin),
    ...TIMING_ROUTES,
    ...createContentRoutes(),
    ...createCodingRoutes(),
  ];
}
