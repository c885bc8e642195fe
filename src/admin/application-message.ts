import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Application as ApplicationMessage,
  ApplicationSchema,
  CallerAuth as CallerAuthMessage,
  Application_State as State,
} from "../../gen/relay/admin/v1/application_pb.js";
import type { Application, CallerAuth } from "../applications/application.js";

const CALLER_AUTH: Readonly<Record<CallerAuth, CallerAuthMessage>> = {
  PUBLIC_KEY: CallerAuthMessage.PUBLIC_KEY,
  SIGNED_USER: CallerAuthMessage.SIGNED_USER,
  PRIVATE_KEY: CallerAuthMessage.PRIVATE_KEY,
};

/** An application as operators see it: an allow-list of members, so that no key hash is ever among them. */
export function messageFromApplication(application: Application): ApplicationMessage {
  return create(ApplicationSchema, {
    publicKey: application.publicKey,
    displayName: application.name,
    callerAuth: CALLER_AUTH[application.callerAuth],
    allowedOrigins: [...application.allowedOrigins],
    allowedAddresses: [...application.allowedAddresses],
    allowedRedirectUris: [...application.allowedRedirectUris],
    callsPerMinute: application.callsPerMinute,
    connectionCallsPerMinute: application.connectionCallsPerMinute,
    state: State[application.state],
    createTime: timestampFromMs(application.createdAt),
    updateTime: timestampFromMs(application.updatedAt),
  });
}
