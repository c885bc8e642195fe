/** The header field that names a request, as a component. */
export const REQUEST_ID = {
  "x-request-id": {
    description:
      "The request's own `x-request-id`, where it had one; otherwise a new id, which is the call's `callId`.",
    schema: { type: "string" },
  },
};

/** Every answer names its request. */
export function withRequestIds(paths: Readonly<Record<string, object>>): object {
  return JSON.parse(JSON.stringify(paths), (name, value) => {
    if (name !== "responses") return value;
    const requestId = { "x-request-id": { $ref: "#/components/headers/x-request-id" } };
    const named = Object.entries(value as Record<string, { headers?: object }>).map(([status, response]) => {
      return [status, { ...response, headers: { ...requestId, ...response.headers } }];
    });
    return Object.fromEntries(named);
  });
}
