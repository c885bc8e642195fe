import { join } from "node:path";
import { toJson } from "@bufbuild/protobuf";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApplicationSchema, CallerAuth, Application_State as State } from "../../gen/relay/admin/v1/application_pb.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness } from "../support/harness.js";
import { JPEG, pngOf } from "../support/pictures.js";
import { type AdminClients, createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";
import { madePageToken } from "./made-page-token.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

describe.each(["connect", "grpc"] as const)("ApplicationService over %s", (protocol) => {
  let clients: AdminClients;
  beforeAll(() => {
    clients = createAdminClients(harness, protocol);
  });

  const create = async (publicKey = "", displayName = "App") => {
    const { application, privateKey } = await clients.applications.createApplication({
      application: { publicKey, displayName },
    });
    return { application: application ?? expect.fail(), privateKey };
  };

  it("keeps an icon, answers with it where one application is asked for, and lists without it", async () => {
    const icon = new Uint8Array(pngOf(3, 2));
    const made = await clients.applications.createApplication({ application: { displayName: "Shown", icon } });
    const { publicKey = "", etag = "" } = made.application ?? {};
    expect([made.application?.icon, (await clients.applications.getApplication({ publicKey })).icon]).toEqual([
      icon,
      icon,
    ]);
    const { applications } = await clients.applications.listApplications({ publicKeyPrefix: publicKey });
    expect(applications).toMatchObject([{ icon: new Uint8Array(0), etag }]);
    const updateMask = { paths: ["icon"] };
    const changed = await clients.applications.updateApplication({
      ...{ application: { publicKey, etag, icon: new Uint8Array(JPEG) }, updateMask },
    });
    expect([changed.icon, changed.displayName]).toEqual([new Uint8Array(JPEG), "Shown"]);
    const none = await clients.applications.updateApplication({ application: { publicKey }, updateMask });
    expect(none.icon).toHaveLength(0);
  });

  it("keeps the icon of an application that was listed and is written back with *", async () => {
    const icon = new Uint8Array(pngOf(3, 2));
    const made = await clients.applications.createApplication({ application: { displayName: "Shown", icon } });
    const { publicKey = "" } = made.application ?? {};
    const { applications } = await clients.applications.listApplications({ publicKeyPrefix: publicKey });
    const [listed = expect.fail()] = applications;
    const writeBack = (change: object, paths = ["*"]) =>
      clients.applications.updateApplication({
        ...{ application: { ...listed, etag: "", ...change }, updateMask: { paths } },
      });
    expect(await writeBack({ displayName: "Renamed" })).toMatchObject({ displayName: "Renamed", icon });
    expect((await clients.applications.getApplication({ publicKey })).icon).toEqual(icon);
    expect((await writeBack({ icon: new Uint8Array(JPEG) })).icon).toEqual(new Uint8Array(JPEG));
    expect((await writeBack({}, ["icon"])).icon).toHaveLength(0);
  });

  it.skipIf(process.env["TEST_DATABASE"] === "postgres")("reads nothing once a change is stored", async () => {
    const db = new Database(join(harness.folder, "relay.db"));
    const emptied = "BEGIN UPDATE applications SET icon = x'' WHERE id = NEW.id; END";
    db.exec(`CREATE TRIGGER made AFTER INSERT ON applications ${emptied}`);
    const icon = new Uint8Array(pngOf(3, 2));
    const { application } = await clients.applications.createApplication({ application: { displayName: "A", icon } });
    const { publicKey = "" } = application ?? {};
    expect(application?.icon).toEqual(icon);
    expect((await clients.applications.updateApplication({ application: { publicKey, icon } })).icon).toEqual(icon);
    db.exec(`DROP TRIGGER made; CREATE TRIGGER renamed AFTER UPDATE OF name ON applications ${emptied}`);
    const renamed = await clients.applications.updateApplication({ application: { publicKey, displayName: "B" } });
    expect([renamed.displayName, renamed.icon]).toEqual(["B", icon]);
    expect((await clients.applications.getApplication({ publicKey })).icon).toHaveLength(0);
    db.exec("DROP TRIGGER renamed");
    db.close();
  });

  it.each([
    ["markup", Buffer.from("<svg onload=alert(1)>"), "must be a PNG, JPEG or WebP picture"],
    [
      "a picture with markup behind it",
      Buffer.concat([pngOf(1, 1), Buffer.from("<script>")]),
      "has data after the picture",
    ],
    ["too many bytes", Buffer.concat([pngOf(1, 1), Buffer.alloc(16 * 1024)]), "must have at most 16384 bytes"],
  ])("refuses an icon that is %s", async (_what, icon, problem) => {
    const application = { displayName: "Shown", icon: new Uint8Array(icon) };
    const refused = await failure(clients.applications.createApplication({ application }));
    expect(refused).toMatchObject({ field: "application.icon", message: expect.stringContaining(problem) });
  });

  it("makes an application that can call, and shows its private key this once", async () => {
    const { application, privateKey } = await clients.applications.createApplication({
      application: {
        displayName: "  Mine ",
        callerAuth: CallerAuth.PRIVATE_KEY,
        allowedOrigins: ["https://APP.example.com"],
        allowedAddresses: ["127.0.0.1"],
        allowedRedirectUris: ["https://app.example.com/done"],
        callsPerMinute: 7,
      },
    });
    const publicKey = application?.publicKey ?? "";
    expect(application).toMatchObject({
      publicKey: expect.stringMatching(/^relay_pk_/),
      displayName: "Mine",
      callerAuth: CallerAuth.PRIVATE_KEY,
      allowedOrigins: ["https://app.example.com"],
      callsPerMinute: 7,
      state: State.ACTIVE,
      createTime: expect.anything(),
      etag: expect.stringMatching(/./),
    });
    const shown = await clients.applications.getApplication({ publicKey });
    expect(shown).toEqual(application);
    expect(JSON.stringify(toJson(ApplicationSchema, shown))).not.toContain(privateKey);
    const found = await harness.store.applications.findByPublicKey(publicKey);
    await harness.connect({ id: found?.id ?? "", publicKey, privateKey }, "ada");
    const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
    const answer = await postRest(harness.url, { providerName: "sandbox", userId: "ada", publicKey, privateKey, call });
    expect(answer.text).toContain('"pincStatus":"success"');
  });

  it.each([
    [{}, "application.display_name", "must be one line"],
    [{ displayName: "a\nb" }, "application.display_name", "must be one line"],
    [{ displayName: "A", publicKey: "short" }, "application.public_key", "8 to 256"],
    [{ displayName: "A", allowedOrigins: ["*"] }, "application.allowed_origins", "wildcard"],
    [{ displayName: "A", allowedAddresses: ["10.0.0.0/33"] }, "application.allowed_addresses", '"10.0.0.0/33"'],
    [{ displayName: "A", allowedRedirectUris: ["javascript:1"] }, "application.allowed_redirect_uris", "https"],
    [{ displayName: "A", callsPerMinute: -1 }, "application.calls_per_minute", "must be from 0"],
    [{ displayName: "A", callerAuth: 9 as CallerAuth }, "application.caller_auth", "does not know"],
    [{ displayName: "A", state: 9 as State }, "application.state", "does not know"],
  ])("refuses %o and names the field", async (application, field, problem) => {
    const call = clients.applications.createApplication({ application });
    expect(await failure(call)).toEqual({
      code: "InvalidArgument",
      field,
      message: expect.stringContaining(problem),
    });
  });

  it("refuses a public key that is taken, and a request without an application", async () => {
    const { application } = await create(`taken-by-${protocol}`);
    expect(await failure(create(application.publicKey))).toMatchObject({ code: "AlreadyExists" });
    const empty = clients.applications.createApplication({});
    expect(await failure(empty)).toMatchObject({ code: "InvalidArgument", field: "application" });
  });

  it("changes what the mask names, what is set without a mask, and everything with *", async () => {
    const { application } = await create();
    const { publicKey } = application;
    const update = (fields: object, paths?: string[]) =>
      clients.applications.updateApplication({
        application: { publicKey, ...fields },
        ...(paths === undefined ? {} : { updateMask: { paths } }),
      });
    await update({ displayName: "ignored", callsPerMinute: 5, state: State.DISABLED }, ["calls_per_minute", "state"]);
    expect(await update({ allowedAddresses: ["::1"] })).toMatchObject({
      displayName: "App",
      callsPerMinute: 5,
      state: State.DISABLED,
      allowedAddresses: ["::1"],
    });
    expect(await update({ displayName: "All" }, ["*"])).toMatchObject({
      displayName: "All",
      callsPerMinute: 0,
      state: State.ACTIVE,
      allowedAddresses: [],
    });
  });

  it.each([[["name"]], [["public_key"]], [["create_time"]], [["*", "state"]], [["state", "application.state"]]])(
    "refuses the mask %j",
    async (paths) => {
      const { application } = await create();
      const call = clients.applications.updateApplication({ application, updateMask: { paths } });
      expect(await failure(call)).toMatchObject({ code: "InvalidArgument", field: "update_mask" });
    },
  );

  it("refuses a change that names nothing, and one of nothing", async () => {
    const { publicKey } = (await create()).application;
    const nothing = clients.applications.updateApplication({ application: { publicKey } });
    expect(await failure(nothing)).toMatchObject({ code: "InvalidArgument", field: "update_mask" });
    const application = { publicKey: "nobody's", displayName: "x" };
    expect(await failure(clients.applications.updateApplication({ application }))).toMatchObject({ code: "NotFound" });
    expect(await failure(clients.applications.updateApplication({}))).toMatchObject({ field: "application" });
  });

  it("lets one of two changes with the same etag through, and no deletion with an old one", async () => {
    const { application } = await create();
    const { publicKey, etag } = application;
    const change = (displayName: string) =>
      clients.applications.updateApplication({ application: { publicKey, displayName, etag } });
    const outcomes = await Promise.all([change("a"), change("b")].map((call) => failure(call)));
    expect(outcomes.map(({ code }) => code).sort()).toEqual(["Aborted", "Unknown"]);
    expect(await failure(clients.applications.deleteApplication({ publicKey, etag }))).toMatchObject({
      code: "Aborted",
    });
    const current = await clients.applications.getApplication({ publicKey });
    await clients.applications.deleteApplication({ publicKey, etag: current.etag });
  });

  it("replaces the private key, and with it the etag", async () => {
    const { application, privateKey } = await create();
    const { publicKey, etag } = application;
    const rotated = await clients.applications.rotateApplicationKey({ publicKey });
    expect(rotated.privateKey).toMatch(/^relay_sk_/);
    expect(rotated.privateKey).not.toBe(privateKey);
    expect((await clients.applications.getApplication({ publicKey })).etag).not.toBe(etag);
  });

  it("deletes, and then knows nothing of it", async () => {
    const { publicKey } = (await create()).application;
    await clients.applications.deleteApplication({ publicKey });
    for (const told of await Promise.all(
      [
        clients.applications.getApplication({ publicKey }),
        clients.applications.deleteApplication({ publicKey }),
        clients.applications.rotateApplicationKey({ publicKey }),
      ].map(failure),
    ))
      expect(told).toMatchObject({ code: "NotFound" });
  });

  it.each([
    ["", "is missing"],
    ["x".repeat(257), "is longer"],
  ])("refuses the public key %j", async (publicKey, problem) => {
    const message = expect.stringContaining(problem);
    for (const told of await Promise.all(
      [
        clients.applications.getApplication({ publicKey }),
        clients.applications.deleteApplication({ publicKey }),
        clients.applications.rotateApplicationKey({ publicKey }),
      ].map(failure),
    ))
      expect(told).toEqual({ code: "InvalidArgument", field: "public_key", message });
  });
});

describe("ListApplications", () => {
  it("gives every application once, in order, page by page", async () => {
    const { applications } = createAdminClients(harness);
    for (let at = 0; at < 25; at++) {
      await applications.createApplication({
        application: { publicKey: `page-no-${at % 7}-${at}`, displayName: "P" },
      });
    }
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await applications.listApplications({ publicKeyPrefix: "page-", pageSize: 10, pageToken });
      expect(page.applications.length).toBeLessThanOrEqual(10);
      seen.push(...page.applications.map(({ publicKey }) => publicKey));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toHaveLength(25);
    expect(seen).toEqual(seen.toSorted());
    expect(new Set(seen).size).toBe(25);
    const exact = await applications.listApplications({ publicKeyPrefix: "page-", pageSize: 25 });
    expect([exact.applications.length, exact.nextPageToken]).toEqual([25, ""]);
  });

  it("refuses a token of another request or of nobody, and a negative size", async () => {
    const { applications } = createAdminClients(harness);
    const { nextPageToken } = await applications.listApplications({ pageSize: 1 });
    const other = Buffer.from(JSON.stringify(["x", "y"])).toString("base64url");
    for (const [pageToken, publicKeyPrefix] of [
      [nextPageToken, "p"],
      [other, ""],
      ["nonsense", ""],
      ["WyJhIl0", ""],
      [madePageToken([""], ["a\0b"]), ""],
      [madePageToken([""], ["a", "b"]), ""],
    ] as const) {
      const call = applications.listApplications({ pageSize: 1, pageToken, publicKeyPrefix });
      expect(await failure(call)).toMatchObject({ code: "InvalidArgument", field: "page_token" });
    }
    expect(await failure(applications.listApplications({ pageSize: -1 }))).toMatchObject({ field: "page_size" });
  });
});
