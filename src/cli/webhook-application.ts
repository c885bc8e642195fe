import { noApplication } from "./application-text.js";
import { failure } from "./exit-error.js";
import type { OpenStore } from "./open-store.js";

/** Whose webhook a command is about. */
export interface WebhookOptions {
  readonly app: string;
  readonly json?: boolean;
}

/** Finds the id of the application that a command names. */
export async function applicationIdFrom({ store }: OpenStore, { app }: WebhookOptions): Promise<string> {
  const application = await store.applications.findByPublicKey(app);
  if (application === undefined) throw noApplication();
  return application.id;
}

/** What a command says when the application has none. */
export function noWebhook(): Error {
  return failure("The application has no webhook. 'relay webhook put' sets one.");
}
