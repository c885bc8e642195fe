import { create, fromJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ProviderSchema } from "../../gen/relay/admin/v1/provider_pb.js";
import {
  type ProviderEntry,
  ProviderEntrySchema,
  type ProviderService,
  ProviderEntry_Source as Source,
} from "../../gen/relay/admin/v1/provider_service_pb.js";
import { MASK } from "../call/explanation.js";
import { isKeyField, mayHoldKey } from "../providers/credential.js";
import { definitionFromProvider } from "../providers/definition-from-provider.js";
import type { OAuth2, Provider } from "../providers/provider.js";
import { isSensitiveField } from "../records/sensitive-name.js";
import { operatorContextKey, type Role } from "./admit.js";
import { type AdminOptions, NAME_PART, namedProvider, pageFrom, pageOf } from "./standard-methods.js";

/** relay.admin.v1.ProviderService, over the definitions read at start. */
export function createProviderService(options: AdminOptions): ServiceImpl<typeof ProviderService> {
  return {
    getProvider: ({ providerName }, context) =>
      entryFrom(options, namedProvider(options.catalog, providerName), context),
    async listProviders(request, context) {
      const all = await options.catalog.list();
      const sorted = [...all].sort((one, other) => (one.name < other.name ? -1 : 1));
      const { rows, nextPageToken } = pageOf(pageFrom(request, [], [NAME_PART]), sorted, ({ name }) => name);
      return { providers: rows.map((provider) => entryFrom(options, provider, context)), nextPageToken };
    },
  };
}

function entryFrom(
  { providerFiles }: AdminOptions,
  provider: Provider,
  { values }: Pick<HandlerContext, "values">,
): ProviderEntry {
  const file = providerFiles.get(provider.name);
  const shown = providerShownTo(values.get(operatorContextKey)?.role, provider);
  return create(ProviderEntrySchema, {
    // Through JSON, which drops undefined members.
    provider: fromJson(ProviderSchema, JSON.parse(JSON.stringify(definitionFromProvider(shown)))),
    source: file === undefined ? Source.CATALOG : Source.FILE,
    file: file ?? "",
  });
}

/** Whether a field with this value is hidden. */
export type IsHidden = (name: string, value: string) => boolean;

/**
 * A provider as a role may see it. The role `read-only` sees {@link MASK} in place of default headers and token request
 * parameters that may contain a key of the operator's. Pure.
 */
function providerShownTo(role: Role | undefined, provider: Provider): Provider {
  if (role === "operator") return provider;
  const { defaultHeaders, oauth2 } = provider;
  const headers = defaultHeaders.map(([name, value]) => [name, mayHoldKey(name) ? MASK : value] as const);
  return { ...provider, defaultHeaders: headers, oauth2: oauth2 && withMaskedParameters(oauth2) };
}

/** A predicate for fields of an explained request that come from the definition and are hidden from the role. Pure. */
export function hiddenFieldsFor(role: Role | undefined, provider: Provider | undefined): IsHidden {
  if (role === "operator" || provider === undefined) return () => false;
  return (name, value) => isKeyField(provider, name, value);
}

/** Leaves the authorization request's parameters alone: every browser shows them in its address bar. */
function withMaskedParameters(oauth2: OAuth2): OAuth2 {
  const { tokenParameters, codeParameters, refreshParameters } = oauth2;
  return {
    ...oauth2,
    tokenParameters: masked(tokenParameters),
    codeParameters: masked(codeParameters),
    refreshParameters: masked(refreshParameters),
  };
}

function masked(parameters: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const pairs = Object.entries(parameters);
  return Object.fromEntries(pairs.map(([name, value]) => [name, isSensitiveField(name) && value ? MASK : value]));
}
