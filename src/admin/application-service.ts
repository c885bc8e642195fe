import type { ServiceImpl } from "@connectrpc/connect";
import { ApplicationSchema, type ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import { APPLICATION_FIELDS, newApplicationFrom, patchFrom } from "./application-input.js";
import { applicationEtag, messageFromApplication } from "./application-message.js";
import { createApplication } from "./create-application.js";
import { deleteApplication } from "./delete-application.js";
import { isCurrentFrom } from "./etag.js";
import { maskedFields } from "./field-mask.js";
import { requiredMessage } from "./invalid-argument.js";
import { namedApplication, noApplication, requiredId } from "./named.js";
import { type AdminOptions, administrationFor } from "./options.js";
import { NAME_PART, pageFrom, pageOfRest } from "./page.js";
import { rotateApplicationKey } from "./rotate-application-key.js";
import { updateApplication } from "./update-application.js";

/** relay.admin.v1.ApplicationService: message → use case → message. */
export function createApplicationService(options: AdminOptions): ServiceImpl<typeof ApplicationService> {
  const { applications } = options.store;
  return {
    async getApplication({ publicKey }) {
      return messageFromApplication(await namedApplication(applications, publicKey));
    },
    async listApplications(request) {
      const prefix = request.publicKeyPrefix;
      const page = pageFrom(request, [prefix], [NAME_PART]);
      const rest = await applications.page({ prefix, after: page.after?.[0], limit: page.size + 1 });
      const { rows, nextPageToken } = pageOfRest(page, rest, ({ publicKey }) => [publicKey]);
      return { applications: rows.map(messageFromApplication), nextPageToken };
    },
    async createApplication(request, context) {
      const input = newApplicationFrom(requiredMessage(request.application, "application"));
      const { application, privateKey } = await createApplication(administrationFor(options, context), input);
      return { application: messageFromApplication(application), privateKey };
    },
    async updateApplication(request, context) {
      const message = requiredMessage(request.application, "application");
      const publicKey = requiredId(message.publicKey, "application.public_key");
      const fields = maskedFields(ApplicationSchema, message, request.updateMask, APPLICATION_FIELDS);
      const isCurrent = isCurrentFrom(message.etag, applicationEtag);
      const administration = administrationFor(options, context);
      const updated = await updateApplication(administration, publicKey, patchFrom(message, fields), isCurrent);
      if (updated === undefined) throw noApplication();
      return messageFromApplication(updated);
    },
    async deleteApplication({ publicKey, etag }, context) {
      const isCurrent = isCurrentFrom(etag, applicationEtag);
      const administration = administrationFor(options, context);
      const isDeleted = await deleteApplication(administration, requiredId(publicKey, "public_key"), isCurrent);
      if (!isDeleted) throw noApplication();
      return {};
    },
    async rotateApplicationKey({ publicKey }, context) {
      const administration = administrationFor(options, context);
      const privateKey = await rotateApplicationKey(administration, requiredId(publicKey, "public_key"));
      if (privateKey === undefined) throw noApplication();
      return { privateKey };
    },
  };
}
