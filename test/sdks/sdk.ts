import type { Account } from "provider-call-relay-client";
import type { Routes } from "./stand-in.js";

/** What an SDK is set up with: the account of a user at the relay, or the same without a relay. */
export type SdkAccount = Pick<Account, "via" | "token" | "fetch">;

/** What people do with an SDK. */
type Task = "list" | "pages" | "create" | "change" | "delete" | "upload" | "download" | "error" | "rate limit";

/** An SDK, what its provider answers, and its typical work. */
export interface Sdk<Client> {
  /** As the package registry names it; also the version that is installed. */
  readonly package: string;
  /** As the catalogue names it. */
  readonly provider: string;
  readonly originParameters?: Readonly<Record<string, string>>;
  /** The line that the documents show. */
  readonly connect: (account: SdkAccount) => Client | Promise<Client>;
  /** Made anew for each run. */
  readonly routes: () => Routes;
  /** Plain values: what came back, by what was done. */
  readonly work: (client: Client) => Promise<Partial<Record<Task, unknown>>>;
  /** Fields that are random or a time. */
  readonly varying?: readonly string[];
  /** Hosts that the SDK asks itself, past the relay, since an answer names them: addresses for one upload or download. */
  readonly around?: readonly string[];
}

/** Keeps the type of the client between the members. */
export function defineSdk<Client>(sdk: Sdk<Client>): Sdk<Client> {
  return sdk;
}

/** What was thrown, as far as `pick` wants to know it. */
export async function caught(promise: PromiseLike<unknown>, pick: (error: any) => unknown): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return pick(error);
  }
  throw new Error("an error was expected, and none came");
}

/** All of something that comes piece by piece. */
export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}
