/** What an operator's action is about. */
export interface Resource {
  /** Such as `applications/KEY/webhook`. */
  readonly name: string;
  /** Of the application that it belongs to; empty for none. */
  readonly publicKey: string;
}

/** An application. */
export function applicationResource(publicKey: string): Resource {
  return resource(publicKey);
}

/** An application's OAuth client at a provider. */
export function oauthClientResource(publicKey: string, providerName: string): Resource {
  return resource(publicKey, "oauthClients", providerName);
}

/** A user's connection at a provider. */
export function connectionResource(publicKey: string, userId: string, providerName: string): Resource {
  return resource(publicKey, "users", userId, "connections", providerName);
}

/** An application's webhook. */
export function webhookResource(publicKey: string): Resource {
  return resource(publicKey, "webhook");
}

/** Each part percent-encoded, so that an id with a slash in it looks like no other resource. */
function resource(publicKey: string, ...parts: readonly string[]): Resource {
  return { publicKey, name: ["applications", publicKey, ...parts].map(encodeURIComponent).join("/") };
}
