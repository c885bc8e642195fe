import type { Provider } from "./provider.js";

/** Default headers that say what a client is and wants; any other may hold a key, whatever it is called. */
const HARMLESS =
  /^(?:accept(?:-charset|-language)?|cache-control|prefer|user-agent|version|revision|[a-z0-9-]+-version)$/;

/** Whether a definition's default header of this name may hold a key of the operator's own. Pure. @param name lower-case. */
export function mayHoldKey(name: string): boolean {
  return !HARMLESS.test(name);
}

/** Whether a field of a request is one of the definition's own that may hold a key, not the caller's. Pure. */
export function isKeyField({ defaultHeaders }: Provider, field: string, sent: string): boolean {
  const lower = field.toLowerCase();
  return defaultHeaders.some(([name, value]) => name === lower && value === sent && mayHoldKey(name));
}
