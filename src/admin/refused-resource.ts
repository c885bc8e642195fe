import { MAX_ID_LENGTH } from "../applications/caller-ids.js";
import { applicationResource, connectionResource, oauthClientResource, type Resource } from "./resource.js";

/** What a message that nobody has checked says it is about, as far as it goes; each part cut where an id ends. */
export function refusedResource(message: object): Resource {
  const parts = partsOf(message);
  const [publicKey, userId, provider] = ["publicKey", "userId", "providerName"].map((name) => textOf(parts, name));
  if (!publicKey) return { name: "applications", publicKey: "" };
  if (userId && provider) return connectionResource(publicKey, userId, provider);
  return provider ? oauthClientResource(publicKey, provider) : applicationResource(publicKey);
}

/** The message's own fields, or those of the resource in it. */
function partsOf(message: object): object {
  const inner = ["application", "oauthClient", "webhook", "call"].map((name): unknown => Reflect.get(message, name));
  return inner.find((each): each is object => typeof each === "object" && each !== null) ?? message;
}

function textOf(parts: object, name: string): string {
  const value: unknown = Reflect.get(parts, name);
  return typeof value === "string" ? value.slice(0, MAX_ID_LENGTH).toWellFormed() : "";
}
