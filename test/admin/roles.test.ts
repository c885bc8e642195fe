import { readdirSync } from "node:fs";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuditRecord_Outcome as Outcome } from "../../gen/relay/admin/v1/audit_pb.js";
import { mayCall } from "../../src/admin/roles.js";
import { ADMIN_SERVICES } from "../../src/admin/rpc-handler.js";
import { ADMIN_TOKENS, type Harness, startHarness } from "../support/harness.js";
import { createAdminClients } from "./admin-bed.js";
import { bearer } from "./bearer.js";

/** Of every file of the package, whether it is served or not. */
const services: DescService[] = [];
for (const file of readdirSync("gen/relay/admin/v1")) {
  const module = (await import(/* @vite-ignore */ `../../gen/relay/admin/v1/${file}`)) as Record<
    string,
    { readonly kind?: string }
  >;
  services.push(...(Object.values(module).filter(({ kind }) => kind === "service") as unknown as DescService[]));
}
const methods: DescMethod[] = services.flatMap((service) => service.methods);
const named = methods.map((method) => [`${method.parent.name}.${method.name}`, method] as const);
/** What the standard methods of AIP call those that change nothing, and others of ours. */
const readsOnly = ({ name }: DescMethod) => /^(Get|List|Explain|Watch)/.test(name);

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

describe("roles", () => {
  it("are for services that are all served", () => {
    expect(services.map(({ typeName }) => typeName).sort()).toEqual(
      ADMIN_SERVICES.map(({ typeName }) => typeName).sort(),
    );
    expect(methods.length).toBeGreaterThan(20);
  });

  it.each(named)("let read-only call %s only if it changes nothing", (_name, method) => {
    expect(mayCall("read-only", method)).toBe(readsOnly(method));
    expect(mayCall("operator", method)).toBe(true);
  });

  it("let nobody but operators call what the table does not have", () => {
    const unknown = {
      parent: { typeName: "relay.admin.v1.NewService" } as DescService,
      localName: "listThings",
    } as DescMethod;
    expect([mayCall("read-only", unknown), mayCall("operator", unknown)]).toEqual([false, true]);
  });

  const unary = named.filter(([, { methodKind }]) => methodKind === "unary");
  it.each(unary)("are kept by %s", async (_name, method) => {
    const baseUrl = harness.adminUrl;
    const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", ...bearer(ADMIN_TOKENS.readOnly) });
    const client = createClient(method.parent, transport) as Record<string, (request: object) => Promise<unknown>>;
    const error = await client[method.localName]?.({}).catch((reason: unknown) => ConnectError.from(reason));
    const code = error instanceof ConnectError ? error.code : undefined;
    if (readsOnly(method)) expect(code).not.toBe(Code.PermissionDenied);
    else expect(code).toBe(Code.PermissionDenied);
  });

  it("do not let the audit trail grow by what they refuse over and over", async () => {
    const own = await startHarness();
    const { applications, audit } = createAdminClients(own, "grpc", ADMIN_TOKENS.readOnly);
    for (let tries = 0; tries < 70; tries++) {
      await expect(applications.deleteApplication({})).rejects.toMatchObject({ code: Code.PermissionDenied });
    }
    expect((await audit.listAuditRecords({})).auditRecords).toHaveLength(60);
    await own.close();
  });

  it("change nothing where they refuse, and the attempt is written down", async () => {
    const { publicKey } = await harness.createApplication();
    const bob = createAdminClients(harness, "grpc", ADMIN_TOKENS.readOnly);
    const refused = { code: Code.PermissionDenied };
    const key = { publicKey, userId: "a/b", providerName: "p" };
    await expect(bob.applications.deleteApplication({ publicKey })).rejects.toMatchObject(refused);
    await expect(bob.connections.deleteConnection(key)).rejects.toMatchObject(refused);
    const oauthClient = { publicKey, providerName: "p", clientSecret: "CANARY_secret" };
    await expect(bob.oauthClients.createOAuthClient({ oauthClient })).rejects.toMatchObject(refused);
    expect(await harness.store.applications.findByPublicKey(publicKey)).toMatchObject({ state: "ACTIVE" });
    const { auditRecords } = await bob.audit.listAuditRecords({ publicKey });
    expect(auditRecords.map(({ actor, method, resource, outcome }) => [actor, method, resource, outcome])).toEqual([
      [
        "bob",
        "relay.admin.v1.OAuthClientService.CreateOAuthClient",
        `applications/${publicKey}/oauthClients/p`,
        Outcome.REFUSED,
      ],
      [
        "bob",
        "relay.admin.v1.ConnectionService.DeleteConnection",
        `applications/${publicKey}/users/a%2Fb/connections/p`,
        Outcome.REFUSED,
      ],
      ["bob", "relay.admin.v1.ApplicationService.DeleteApplication", `applications/${publicKey}`, Outcome.REFUSED],
    ]);
  });
});
