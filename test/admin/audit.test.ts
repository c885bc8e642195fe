import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AuditRecord, AuditRecord_Outcome as Outcome } from "../../gen/relay/admin/v1/audit_pb.js";
import { auditIdBefore, createAuditStamps } from "../../src/admin/administration.js";
import { ADMIN_SERVICES } from "../../src/admin/rpc-handler.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type AdminClients, createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";
import { madePageToken } from "./made-page-token.js";

/** In no answer, no line of the log, no record of the trail. */
const SECRETS = {
  clientSecret: "CANARY_client_secret",
  accessToken: "CANARY_access_token",
  refreshToken: "CANARY_refresh_token",
};
const URI = "https://app.example.com/hook?key=CANARY_query";

let harness: Harness;
let clients: AdminClients;
/** Every answer but those that show a secret this once. */
const answers: unknown[] = [];
/** What was shown this once. */
const shownOnce: string[] = [];
let publicKey = "";

/** Everything that an operator can change, once. */
beforeAll(async () => {
  harness = await startHarness();
  clients = createAdminClients(harness);
  const { applications, oauthClients, connections, webhooks } = clients;
  const made = await applications.createApplication({ application: { displayName: "A" } });
  publicKey = made.application?.publicKey ?? "";
  const rotated = await applications.rotateApplicationKey({ publicKey });
  const oauthClient = { publicKey, providerName: "github", clientId: "id", clientSecret: SECRETS.clientSecret };
  const key = { publicKey, userId: "ada", providerName: "github" };
  const { accessToken: access_token, refreshToken: refresh_token } = SECRETS;
  answers.push(
    made.application,
    await applications.updateApplication({ application: { publicKey, displayName: "B", callsPerMinute: 1 } }),
    await oauthClients.createOAuthClient({ oauthClient }),
    await oauthClients.updateOAuthClient({ oauthClient, updateMask: { paths: ["client_secret"] } }),
    await connections.putConnection({ ...key, tokenResponse: JSON.stringify({ access_token, refresh_token }) }),
  );
  const webhook = await webhooks.putWebhook({ webhook: { publicKey, uri: URI } });
  const link = await connections.createConnectLink({ publicKey, userId: "ada", providerNames: ["github"] });
  shownOnce.push(made.privateKey, rotated.privateKey, webhook.secret, link.connectUri);
  answers.push(
    await applications.listApplications({}),
    await oauthClients.listOAuthClients({ publicKey }),
    await connections.listConnections({ publicKey }),
    await clients.providers.getProvider({ providerName: "github" }),
    await connections.deleteConnection(key),
    await webhooks.deleteWebhook({ publicKey }),
    await oauthClients.deleteOAuthClient({ publicKey, providerName: "github" }),
    await applications.deleteApplication({ publicKey }),
  );
});
afterAll(() => harness.close());

const told = ({ actor, method, resource, changedFields, outcome }: AuditRecord) => [
  actor,
  method.replace("relay.admin.v1.", ""),
  resource.replace(publicKey, "KEY"),
  changedFields.join(" "),
  outcome,
];

describe("the audit trail", () => {
  it("has every change: who, what, on what, which fields", async () => {
    const { auditRecords } = await clients.audit.listAuditRecords({ publicKey });
    const all =
      "display_name caller_auth allowed_origins allowed_addresses allowed_redirect_uris calls_per_minute connection_calls_per_minute state call_rules max_call_token_seconds accent_color icon";
    const [app, client] = ["applications/KEY", "applications/KEY/oauthClients/github"];
    const connection = "applications/KEY/users/ada/connections/github";
    const done = Outcome.DONE;
    expect(auditRecords.reverse().map(told)).toEqual([
      ["alice", "ApplicationService.CreateApplication", app, all, done],
      ["alice", "ApplicationService.RotateApplicationKey", app, "private_key", done],
      ["alice", "ApplicationService.UpdateApplication", app, "display_name calls_per_minute", done],
      [
        "alice",
        "OAuthClientService.CreateOAuthClient",
        client,
        "client_id client_secret scope origin_parameters",
        done,
      ],
      ["alice", "OAuthClientService.UpdateOAuthClient", client, "client_secret", done],
      ["alice", "ConnectionService.PutConnection", connection, "token_response origin_parameters", done],
      ["alice", "WebhookService.PutWebhook", `${app}/webhook`, "uri secret", done],
      ["alice", "ConnectionService.CreateConnectLink", "applications/KEY/users/ada", "", done],
      ["alice", "ConnectionService.DeleteConnection", connection, "", done],
      ["alice", "WebhookService.DeleteWebhook", `${app}/webhook`, "", done],
      ["alice", "OAuthClientService.DeleteOAuthClient", client, "", done],
      ["alice", "ApplicationService.DeleteApplication", app, "", done],
    ]);
    const methods = new Set(
      ADMIN_SERVICES.flatMap((service) => service.methods.map(({ name }) => `${service.typeName}.${name}`)),
    );
    expect(auditRecords.filter(({ method }) => !methods.has(method))).toEqual([]);
    // Captures, call tokens, calls, refreshes and tests of operators have tests of their own.
    const changing = [...methods].filter(
      (name) =>
        !/\.(Get|List|Watch|Explain|StartCall|StopCall|Perform|CreateCallToken|Refresh|SendTest)\w*$/.test(name),
    );
    expect(new Set(auditRecords.map(({ method }) => method))).toEqual(new Set(changing));
  });

  it("is read page by page, and up to a time", async () => {
    const { audit } = clients;
    const whole = (await audit.listAuditRecords({})).auditRecords.map(({ id }) => id);
    const first = await audit.listAuditRecords({ pageSize: 4 });
    const second = await audit.listAuditRecords({ pageSize: 100, pageToken: first.nextPageToken });
    expect([...first.auditRecords, ...second.auditRecords].map(({ id }) => id)).toEqual(whole);
    expect(whole).toEqual(whole.toSorted().toReversed());
    for (const id of ["a\0b", "", "x".repeat(300)]) {
      const pageToken = madePageToken([undefined, undefined], [id]);
      expect(await failure(audit.listAuditRecords({ pageToken }))).toMatchObject({ field: "page_token" });
    }
    const beforeTime = { seconds: 1n, nanos: 0 };
    expect((await audit.listAuditRecords({ beforeTime })).auditRecords).toEqual([]);
  });

  it("has no secret, and neither has any answer or the log", async () => {
    const { auditRecords } = await clients.audit.listAuditRecords({});
    const json = (value: unknown) =>
      JSON.stringify(value, (_key, each) => (typeof each === "bigint" ? `${each}` : each));
    const everything = [json(auditRecords), json(answers), harness.logLines.join("")];
    for (const secret of [...Object.values(SECRETS), ...shownOnce, "CANARY_query"]) {
      expect(secret.length).toBeGreaterThan(10);
      for (const text of everything) expect(text).not.toContain(secret);
    }
    for (const text of everything) expect(text).not.toMatch(/CANARY_(operator|read_only)_token/);
  });
});

describe("createAuditStamps()", () => {
  it("makes UUIDs of version 7 that grow, though the clock goes back or stands still, each with its own time", () => {
    let now = 1_800_000_000_000;
    const next = createAuditStamps(
      () => now,
      () => Buffer.alloc(8, 0xff),
    );
    const stamps = [next(), next()];
    now -= 5000;
    stamps.push(next());
    for (let more = 0; more < 5000; more++) stamps.push(next());
    now += 10_000;
    stamps.push(next());
    for (const { id, at } of stamps) {
      expect(auditIdBefore(at) < id && id < auditIdBefore(at + 1)).toBe(true);
    }
    const ids = stamps.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted());
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(auditIdBefore(1_800_000_000_000) < (ids[0] ?? "")).toBe(true);
    expect(auditIdBefore(1_800_000_000_001) > (ids[1] ?? "")).toBe(true);
  });
});
