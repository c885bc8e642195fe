import type { OperationDetails } from "./operation.js";

const json = (name: string) => ({ "application/json": { schema: { $ref: `#/components/schemas/${name}` } } });
const PRIVATE_KEY = [{ privateKeyBearer: [] }, { partnerKey: [] }];
/** `{}`: the proof may also stand in the query or the body, and an application may ask for none. */
const ANY_PROOF = [{}, ...PRIVATE_KEY];
const EXAMPLE_CALL = { url: "https://api.github.com/user/repos", method: "GET", queryString: { per_page: 2 } };

const REFUSED = {
  description: "The call was refused or failed: an error row, with the HTTP status of its `errorType`.",
  content: json("ErrorResponse"),
};

const CALL: OperationDetails = {
  tag: "Calls",
  security: ANY_PROOF,
  bodyExample: EXAMPLE_CALL,
  note:
    "The body is read as JSON whatever its content type says. With the member `x-pinc-response-data-at` of `headers`, such as " +
    "`rows.0.data`, the answer is that part of the envelope alone. `data` is the provider's JSON byte for byte.",
  responses: {
    "200": { description: "The outcome, a success row or an error row.", content: json("CallResponse") },
    default: {
      description:
        "The same, where the relay is told with `RELAY_HTTP_STATUS=mirror` to answer with the row's own status.",
      content: json("CallResponse"),
    },
  },
};

const STREAM: OperationDetails = {
  tag: "Calls",
  security: ANY_PROOF,
  bodyExample: EXAMPLE_CALL,
  note: "The answer is the provider's own: its status, its fields, and its body as it comes.",
  responses: {
    "200": {
      description: "What the provider answered; any other status of the provider comes as itself.",
      headers: { "x-call-id": { $ref: "#/components/headers/x-call-id" } },
      content: { "*/*": {} },
    },
    default: {
      description:
        "With the field `x-error-type`: the call was refused or failed before the provider's answer began. Without it: " +
        "what the provider answered.",
      headers: {
        "x-call-id": { $ref: "#/components/headers/x-call-id" },
        "x-error-type": { $ref: "#/components/headers/x-error-type" },
      },
      content: { ...json("ErrorResponse"), "*/*": {} },
    },
  },
};

const connections = (name: string, security: readonly object[]): OperationDetails => ({
  tag: "Connections",
  security,
  responses: { "200": { description: "Done.", content: json(name) }, default: REFUSED },
});

/** What each annotated method answers over plain HTTP, by its name; every one of them must be here. */
export const DETAILS: Readonly<Record<string, OperationDetails>> = {
  Call: CALL,
  CallStream: STREAM,
  ListConnections: connections("ListConnectionsResponse", ANY_PROOF),
  DeleteConnection: connections("DeleteConnectionResponse", ANY_PROOF),
  CreateConnectLink: {
    ...connections("CreateConnectLinkResponse", ANY_PROOF),
    bodyExample: { publicKey: "…", userId: "ada", providerName: "github" },
  },
};
