import { create, fromJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ProviderSchema } from "../../gen/relay/admin/v1/provider_pb.js";
import {
  type ProviderEntry,
  ProviderEntrySchema,
  type ProviderService,
  ProviderEntry_Source as Source,
} from "../../gen/relay/admin/v1/provider_service_pb.js";
import { definitionFromProvider } from "../providers/definition-from-provider.js";
import type { Provider } from "../providers/provider.js";
import { namedProvider } from "./named.js";
import { operatorContextKey } from "./operator-context.js";
import type { AdminOptions } from "./options.js";
import { NAME_PART, pageFrom, pageOf } from "./page.js";
import { providerShownTo } from "./shown-provider.js";

/** relay.admin.v1.ProviderService, over what was read at start. */
export function createProviderService(options: AdminOptions): ServiceImpl<typeof ProviderService> {
  const sorted = [...options.catalog.list()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return {
    getProvider: ({ providerName }, context) =>
      entryFrom(options, namedProvider(options.catalog, providerName), context),
    listProviders(request, context) {
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
    // Printed and read again: what is undefined is left out.
    provider: fromJson(ProviderSchema, JSON.parse(JSON.stringify(definitionFromProvider(shown)))),
    source: file === undefined ? Source.CATALOG : Source.FILE,
    file: file ?? "",
  });
}
