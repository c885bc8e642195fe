import type { Account } from "./account.js";
import type { Handler, Route, RoutedRequest } from "./router.js";

/** A request to the resource API; its token has been judged. */
export interface ResourceRequest extends RoutedRequest {
  readonly accessToken: string;
  readonly account: Account;
}

/** Decides the answer of one resource. */
export type ResourceHandler = Handler<ResourceRequest>;

/** One line of the resource API's route table. */
export type ResourceRoute = Route<ResourceRequest>;

/** A resource that is only read. */
export function getRoute(path: string, handle: ResourceHandler): ResourceRoute {
  return { path, methods: ["GET"], handle };
}

/** A resource that takes every method. */
export function anyRoute(path: string, handle: ResourceHandler): ResourceRoute {
  return { path, methods: "ANY", handle };
}
