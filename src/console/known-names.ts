import type { ApplicationJson } from "../../gen/relay/admin/v1/application_pb.js";
import type { ProviderJson } from "../../gen/relay/admin/v1/provider_pb.js";
import type { Api } from "./api.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { visibleText } from "./text.js";

/** What the form can offer to whoever fills it in. */
export interface KnownNames {
  readonly applications: readonly ApplicationJson[];
  readonly providers: readonly ProviderJson[];
}

/** More suggestions help nobody; any other may be typed. */
const MAX_APPLICATIONS = 100;
const MAX_PROVIDERS = 500;

/** Rejects with ApiError. */
export async function loadKnownNames(api: Api): Promise<KnownNames> {
  const [{ applications = [] }, { providers = [] }] = await Promise.all([
    api.call("ApplicationService/ListApplications", { pageSize: MAX_APPLICATIONS }),
    api.call("ProviderService/ListProviders", { pageSize: MAX_PROVIDERS }),
  ]);
  return { applications, providers: providers.flatMap(({ provider }) => (provider === undefined ? [] : [provider])) };
}

/** The lists that fields suggest from: `known-applications` and `known-providers`. */
export function suggestionLists({ applications, providers }: KnownNames): TemplateResult {
  return html`<datalist id="known-applications">
      ${applications.map(({ publicKey = "", displayName = "" }) => html`<option value=${publicKey}>${visibleText(displayName)}</option>`)}
    </datalist>
    <datalist id="known-providers">
      ${providers.map(({ name = "", displayName = "" }) => html`<option value=${name}>${visibleText(displayName)}</option>`)}
    </datalist>`;
}

/** Where a provider's API is; nothing for one that is not known. */
export function originsHint(names: KnownNames | undefined, providerName: string): TemplateResult | typeof nothing {
  const provider = names?.providers.find(
    ({ name, aliases = [] }) => name === providerName || aliases.includes(providerName),
  );
  if (provider === undefined) return nothing;
  return html`On ${visibleText((provider.apiOrigins ?? []).join(" or "))}`;
}
