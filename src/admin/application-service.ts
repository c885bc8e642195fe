import type { ServiceImpl } from "@connectrpc/connect";
import type { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import type { ApplicationStore } from "../applications/application.js";
import { messageFromApplication } from "./application-message.js";

/** relay.admin.v1.ApplicationService: message → store → message. */
export function createApplicationService({
  applications,
}: {
  readonly applications: ApplicationStore;
}): Partial<ServiceImpl<typeof ApplicationService>> {
  return {
    async listApplications() {
      return { applications: (await applications.list()).map(messageFromApplication) };
    },
  };
}
