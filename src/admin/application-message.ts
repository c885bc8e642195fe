import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Application as ApplicationMessage,
  ApplicationSchema,
  CallerAuth as CallerAuthMessage,
  Application_State as State,
} from "../../gen/relay/admin/v1/application_pb.js";
import type { Application } from "../applications/application.js";
import { etagFrom } from "./etag.js";

/** An application as operators see it: an allow-list of members, so that no key hash is ever among them. */
export function messageFromApplication(application: Application): ApplicationMessage {
  return create(ApplicationSchema, {
    publicKey: application.publicKey,
    displayName: application.name,
    callerAuth: CallerAuthMessage[application.callerAuth],
    allowedOrigins: [...application.allowedOrigins],
    allowedAddresses: [...application.allowedAddresses],
    allowedRedirectUris: [...application.allowedRedirectUris],
    callsPerMinute: application.callsPerMinute,
    connectionCallsPerMinute: application.connectionCallsPerMinute,
    state: State[application.state],
    ...(application.captureUntil === 0 ? {} : { captureEndTime: timestampFromMs(application.captureUntil) }),
    createTime: timestampFromMs(application.createdAt),
    updateTime: timestampFromMs(application.updatedAt),
    etag: applicationEtag(application),
  });
}

/** Of everything that an operator can change, and of when that was done last: a new key counts, too. */
export function applicationEtag(application: Application): string {
  const { id, name, callerAuth, allowedOrigins, allowedAddresses, allowedRedirectUris, state, updatedAt } = application;
  const { callsPerMinute, connectionCallsPerMinute } = application;
  const lists = [allowedOrigins, allowedAddresses, allowedRedirectUris];
  return etagFrom([id, name, callerAuth, lists, callsPerMinute, connectionCallsPerMinute, state, updatedAt]);
}
