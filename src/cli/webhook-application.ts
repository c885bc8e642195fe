import type { Application } from "../applications/application.js";
import { noApplication } from "./application-text.js";
import { failure } from "./exit-error.js";
import type { OpenStore } from "./open-store.js";

/** Whose webhook a command is about. */
export interface WebhookOptions {
  readonly app: string;
  readonly json?: boolean;
}

/** Finds the application that a command names. */
export async function applicationFrom({ store }: OpenStore, { app }: WebhookOptions): Promise<Application> {
  const application = await store.applications.findByPublicKey(app);
  if (application === undefined) throw noApplication();
  return application;
}

/** What a command says when the application has none. */
export function noWebhook(): Error {
  return failure("The application has no webhook. 'relay webhook put' sets one.");
}
