import type { ApplicationJson } from "../../gen/relay/admin/v1/application_pb.js";
import type { ProviderJson } from "../../gen/relay/admin/v1/provider_pb.js";
import type { ProviderEntryJson } from "../../gen/relay/admin/v1/provider_service_pb.js";
import type { Api } from "./api.js";
import { html, type TemplateResult } from "./lit-html.js";
import { allPages, undefinedIfMissing } from "./loading.js";
import type { Choice } from "./picker.js";
import { addressOf, visibleText } from "./text.js";

/** Cache of application and provider names, shared by all views: each is requested once. */
export interface Directory {
  /** The provider with this name or alias; undefined if there is none, or it is not loaded yet. */
  providerOf(name: string): ProviderJson | undefined;
  /** An application's name; its public key until the name is loaded, and if the application no longer exists. */
  applicationName(publicKey: string): string;
  /** Called for each address: what could not be had is asked for once more where it is shown. */
  askAgain(): void;
  /** Stores the names of applications from an answer. */
  note(applications: readonly ApplicationJson[]): void;
  /** Applications whose name or key contains the text. Rejects with ApiError. */
  findApplications(text: string): Promise<readonly Choice[]>;
  findProviders(text: string): Promise<readonly Choice[]>;
  /** Connected users of an application whose id starts with the text; none without an application. */
  findUsers(publicKey: string, text: string): Promise<readonly Choice[]>;
}

/** Number of suggestions: more than that, and people keep typing. */
const MAX_CHOICES = 10;
/** Connections to load for that many users, who have a few each. */
const USER_ROWS = 50;

/** @param onChange called when a name has been loaded. */
export function createDirectory(api: Api, onChange: () => void): Directory {
  const names = new Map<string, string>();
  /** Public keys of applications whose names could not be had, since `askAgain()`. */
  const unnamed = new Set<string>();
  /** Whether the providers could not be had, since `askAgain()`. */
  let hasFailed = false;
  let providers: Promise<readonly ProviderJson[]> | undefined;
  let known: readonly ProviderJson[] = [];

  function loadProviders(): Promise<readonly ProviderJson[]> {
    providers ??= allProviders(api).then((entries) => {
      known = entries.flatMap(({ provider }) => (provider === undefined ? [] : [provider]));
      onChange();
      return known;
    });
    // After a failure the next search tries again.
    providers.catch(() => {
      providers = undefined;
      hasFailed = true;
    });
    return providers;
  }

  function note(applications: readonly ApplicationJson[]): void {
    for (const { publicKey = "", displayName = "" } of applications) {
      names.set(publicKey, displayName);
      unnamed.delete(publicKey);
    }
  }

  async function ask(publicKey: string): Promise<void> {
    names.set(publicKey, publicKey);
    try {
      const found = await api.call("ApplicationService/GetApplication", { publicKey }).catch(undefinedIfMissing);
      // A deleted application is shown by its key.
      if (found !== undefined) note([found]);
      onChange();
    } catch {
      unnamed.add(publicKey);
    }
  }

  return {
    providerOf(name) {
      if (!hasFailed) void loadProviders().catch(() => {});
      return known.find((each) => each.name === name || (each.aliases ?? []).includes(name));
    },
    applicationName(publicKey) {
      if (publicKey !== "" && !names.has(publicKey)) void ask(publicKey);
      return names.get(publicKey) ?? publicKey;
    },
    askAgain() {
      for (const publicKey of unnamed) names.delete(publicKey);
      unnamed.clear();
      hasFailed = false;
    },
    note,
    async findApplications(query) {
      const { applications = [] } = await api.call("ApplicationService/ListApplications", {
        query,
        pageSize: MAX_CHOICES,
      });
      note(applications);
      return applications.map(({ publicKey = "", displayName = "" }) => ({
        ...{ value: publicKey, label: displayName, detail: publicKey },
      }));
    },
    async findProviders(text) {
      const wanted = text.toLowerCase();
      const found = (await loadProviders()).filter(({ name = "", displayName = "", aliases = [] }) =>
        [name, displayName, ...aliases].some((each) => each.toLowerCase().includes(wanted)),
      );
      // An exact match first, then names that start with the text, then the rest.
      const rankOf = ({ name = "" }: ProviderJson) => (name === wanted ? 0 : name.startsWith(wanted) ? 1 : 2);
      return found
        .sort((one, other) => rankOf(one) - rankOf(other))
        .slice(0, MAX_CHOICES)
        .map(({ name = "", displayName = "" }) => ({
          value: name,
          label: name,
          detail: displayName,
          ignoresCase: true,
        }));
    },
    async findUsers(publicKey, userIdPrefix) {
      if (publicKey === "") return [];
      const request = { publicKey, userIdPrefix, pageSize: USER_ROWS };
      const { connections = [] } = await api.call("ConnectionService/ListConnections", request);
      const users = new Set(connections.map(({ userId = "" }) => userId));
      return [...users].slice(0, MAX_CHOICES).map((user) => ({ value: user, label: user }));
    },
  };
}

/** An application's name as a link to its view. */
export function applicationLink({ applicationName }: Directory, publicKey: string): TemplateResult {
  return html`<a href=${addressOf("application", { publicKey })} title=${visibleText(publicKey)}><bdi>${visibleText(applicationName(publicKey))}</bdi></a>`;
}

/**
 * Link to the documentation of a provider's API. Only https: a definition may contain any text, and a javascript: URL
 * would run.
 */
export function documentationLink(provider: ProviderJson | undefined): TemplateResult | string {
  const { documentationUri = "", displayName = "", name = "" } = provider ?? {};
  if (!documentationUri.startsWith("https://")) return visibleText(documentationUri);
  const label = `Documentation of the ${visibleText(displayName || name)} API`;
  return html`<a href=${documentationUri} target="_blank" rel="noreferrer" aria-label=${label}>Documentation</a>`;
}

/** Fetches all providers, page by page. Rejects with ApiError. */
export async function allProviders(api: Api): Promise<readonly ProviderEntryJson[]> {
  const pages = await allPages((page) => api.call("ProviderService/ListProviders", page));
  return pages.flatMap(({ providers = [] }) => providers);
}
