import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { CreateConnectLinkRequest } from "../../gen/relay/admin/v1/connection_pb.js";
import { type Reason, RelayError } from "../model/errors.js";
import { createConnectLink } from "../oauth/connect-session.js";
import { auditEntryFrom, userResource } from "./administration.js";
import {
  type AdminOptions,
  administrationFor,
  invalidField,
  namedApplication,
  requiredId,
} from "./standard-methods.js";

/**
 * Makes a link for a user, once the audit trail has who did: for the providers that are named, or all of the
 * application's. The link is only here.
 */
export async function connectLinkFor(
  options: AdminOptions,
  request: CreateConnectLinkRequest,
  context: HandlerContext,
) {
  const { store, connecting } = options;
  const { publicKey, userId, providerNames, redirectUri, scope } = request;
  const application = await namedApplication(store.applications, publicKey);
  requiredId(userId, "user_id");
  if (application.state !== "ACTIVE")
    throw new ConnectError("This application is disabled: no user can connect.", Code.FailedPrecondition);
  // Without a name the link would be for all of the application's providers, which the list does not say.
  if (providerNames.includes("")) throw invalidField("provider_names", "provider_names has an entry that is empty.");
  const [only = "", ...others] = providerNames;
  const link = await createConnectLink(connecting, {
    ...{ application, userId },
    providerName: others.length === 0 ? only : "",
    providers: others.length === 0 ? [] : providerNames,
    redirectUri: redirectUri || undefined,
    scope: scope || undefined,
    originParameters: new Map(),
    authorizationParameters: {},
  }).catch((error: unknown) => {
    throw refusedLink(error);
  });
  const administration = administrationFor(options, context);
  const entry = auditEntryFrom(administration, "ConnectionService.CreateConnectLink", userResource(publicKey, userId));
  await store.audit.add({ ...entry, outcome: "DONE" });
  return { connectUri: link.uri, expireTime: timestampFromMs(link.expiresAt) };
}

/** The field that each refusal is about. */
const FIELDS: Partial<Record<Reason, string>> = {
  INVALID_PROVIDER: "provider_names",
  CALLER_NOT_ALLOWED: "redirect_uri",
  CALL_FORMAT_ERROR: "scope",
};

function refusedLink(error: unknown): unknown {
  if (!(error instanceof RelayError)) return error;
  const field = FIELDS[error.reason];
  if (field !== undefined) return invalidField(field, error.message);
  return error.reason === "PROVIDER_MISCONFIGURED" ? new ConnectError(error.message, Code.FailedPrecondition) : error;
}
