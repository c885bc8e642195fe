import { HEALTH_PATHS } from "../../src/http/dispatch.js";

/** Tag of the health routes. */
export const HEALTH_TAG = { name: "Health", description: "For load balancers and orchestrators." };

/** Every port has them; no schema does. */
export const HEALTH_ROUTES = {
  [HEALTH_PATHS.liveness]: health("liveness", "The process answers: its event loop turns. Says nothing of the store.", {
    "200": plain("Alive.", "ok\n"),
  }),
  [HEALTH_PATHS.readiness]: health(
    "readiness",
    "Calls can be served: the store answers, the keys open it, and no stop has begun. gRPC health says the same.",
    { "200": plain("Ready.", "ok\n"), "503": plain("Send calls elsewhere, and ask again.", "not ready\n") },
  ),
};

function health(operationId: string, description: string, responses: object): object {
  const [summary = ""] = description.split(/[:.]/, 1);
  return { get: { operationId, tags: [HEALTH_TAG.name], summary, description, security: [], responses } };
}

function plain(description: string, text: string): object {
  return { description, content: { "text/plain": { schema: { type: "string", const: text } } } };
}
