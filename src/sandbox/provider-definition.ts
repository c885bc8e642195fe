/** The ProtoJSON of `relay.admin.v1.Provider` for a sandbox; members with the default value are left out. */
export interface ProviderDefinition {
  readonly name: string;
  readonly displayName: string;
  readonly apiOrigins: readonly string[];
  readonly oauth2: {
    readonly authorizationEndpoint: string;
    readonly tokenEndpoint: string;
    readonly revocationEndpoint: string;
    readonly pkce: boolean;
    readonly clientAuthentication: string;
  };
}

/** Describes the sandbox at `origin` as a provider that the relay can be started with. */
export function providerDefinitionFromOrigin(origin: string, name: string): ProviderDefinition {
  return {
    name,
    displayName: "Sandbox",
    apiOrigins: [origin],
    oauth2: {
      authorizationEndpoint: `${origin}/oauth/authorize`,
      tokenEndpoint: `${origin}/oauth/token`,
      revocationEndpoint: `${origin}/oauth/revoke`,
      pkce: true,
      clientAuthentication: "client_secret_basic",
    },
  };
}
