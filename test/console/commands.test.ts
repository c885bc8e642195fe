import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { commandFor, rulesFromText } from "../../src/console/commands.js";
import { createFolder } from "../cli/run-relay.js";

/** Ids that would do something, if they could. */
const HOSTILE = '-it\'s "$(touch ran)" `touch ran`; \\ touch ran\n\u001b[201~1 \u009b\u202e\u2028é 👋';

/** What a shell makes of a command: the words that `relay` gets. */
function wordsOf(text: string): readonly string[] {
  const script = `relay() { printf '%s\\0' "$@"; }\n${text.replace(/ < \S+$/, "")}`;
  return execFileSync("bash", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
}

describe("commandFor()", () => {
  it("is one word for each text, whatever it holds, and nothing that a terminal acts on", () => {
    const { text } = commandFor("ConnectionService/DeleteConnection", {
      ...{ publicKey: "pk", userId: HOSTILE, providerName: "github", skipRevocation: true },
    });
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    expect(wordsOf(text)).toEqual([
      ...["connection", "delete", "--app", "pk", `--user=${HOSTILE}`, "--provider", "github", "--no-revoke"],
    ]);
    const created = commandFor("ApplicationService/CreateApplication", { application: { displayName: HOSTILE } });
    expect(wordsOf(created.text)).toEqual(["app", "create", "--caller-auth", "public-key", "--", HOSTILE]);
  });

  it("never holds a secret, and says what the file holds instead", () => {
    const secrets = { api_key: "CANARY_secret" };
    const put = { publicKey: "pk", userId: "ada", providerName: "sendgrid", tokenResponse: "CANARY_token", secrets };
    const oauthClient = { publicKey: "pk", providerName: "github", clientId: "id", clientSecret: "CANARY_client" };
    const commands = [
      commandFor("ConnectionService/PutConnection", put),
      commandFor("OAuthClientService/UpdateOAuthClient", { oauthClient }),
    ];
    expect(JSON.stringify(commands)).not.toContain("CANARY");
    expect(commands).toEqual([
      {
        text: "relay connection put --app pk --user ada --provider sendgrid < connection.json",
        input: 'connection.json holds {"api_key": "…"}.',
      },
      {
        text: "relay client put --app pk --provider github < client.json",
        input: expect.stringContaining("client.json holds"),
      },
    ]);
  });

  const key = { publicKey: "pk" };
  it.each([
    ["relay app rotate-key pk", commandFor("ApplicationService/RotateApplicationKey", key)],
    ["relay app delete pk", commandFor("ApplicationService/DeleteApplication", key)],
    [
      "relay app capture --minutes 5 pk",
      commandFor("CallRecordService/StartCallCapture", { ...key, duration: "300s" }),
    ],
    ["relay app capture --off pk", commandFor("CallRecordService/StopCallCapture", key)],
    [
      "relay client delete --app pk --provider github",
      commandFor("OAuthClientService/DeleteOAuthClient", { ...key, providerName: "github" }),
    ],
    [
      "relay webhook put --app pk https://a.example/",
      commandFor("WebhookService/PutWebhook", { webhook: { ...key, uri: "https://a.example/" } }),
    ],
    [
      "relay connection link --app pk --user ada --providers github,slack --redirect-uri https://a.example/",
      commandFor("ConnectionService/CreateConnectLink", {
        ...{ ...key, userId: "ada", providerNames: ["github", "slack"], redirectUri: "https://a.example/" },
      }),
    ],
    [
      "relay connection refresh --app pk --user ada --provider github",
      commandFor("ConnectionService/RefreshConnection", { ...key, userId: "ada", providerName: "github" }),
    ],
    ["relay webhook test --app pk", commandFor("WebhookService/SendTestEvent", key)],
    ["relay webhook delete --app pk", commandFor("WebhookService/DeleteWebhook", key)],
    [
      "relay token create --app pk --user ada --provider github --ttl 60s --method GET --path '/a/**'",
      commandFor("ApplicationService/CreateCallToken", {
        ...{ ...key, userId: "ada", providerNames: ["github"], lifetimeSeconds: 60 },
        rules: [{ methods: ["GET"], paths: ["/a/**"] }],
      }),
    ],
  ])("writes '%s', whose options the command has", async (text, command) => {
    expect(command.text).toBe(text);
    const [group = "", name = "", ...rest] = wordsOf(text);
    const { stdout } = await createFolder().run([group, name, "--help"]);
    for (const word of rest.filter((each) => each.startsWith("--"))) expect(stdout).toContain(` ${word}`);
  });
});

describe("commandFor() of an update", () => {
  it("says what the mask names, and nothing else", () => {
    const application = { publicKey: "pk", displayName: "Shop", callsPerMinute: 0, allowedOrigins: [] };
    const textOf = (updateMask: string) =>
      commandFor("ApplicationService/UpdateApplication", { application, updateMask }).text;
    expect(textOf("displayName")).toBe("relay app update --name Shop pk");
    expect(textOf("allowedOrigins,callsPerMinute")).toBe("relay app update --no-origins --calls-per-minute 0 pk");
    expect(textOf("callRules")).toBe("relay app update --no-call-rules pk");
  });

  it("makes the token that an explanation of its terms is about", () => {
    const call = { publicKey: "pk", userId: "ada", providerName: "github", call: { method: "GET", url: "https://a/" } };
    const { text } = commandFor("CallService/ExplainCall", { call, callTokenTerms: { providerNames: ["github"] } });
    expect(text).toBe(
      "RELAY_PRIVATE_KEY=$(relay token create --app pk --user ada --provider github) relay call github --app pk --user ada -X GET --explain https://a/",
    );
  });
});

describe("rulesFromText()", () => {
  it.each([
    ["", []],
    [' {"github":[{"methods":["GET"]}]}', [{ providerName: "github", rules: [{ methods: ["GET"] }] }]],
  ])("of %j", (text, rules) => {
    expect(rulesFromText(text)).toEqual(rules);
  });

  it.each([
    ...["[]", "null", '{"github":{}}', "{"].map((text) => [text, "must be a JSON object of lists"]),
    ['{"github":[{"methods":["GET"]}],"github":[]}', "github is given twice"],
    ['{"github":[{"methods":["GET"],"methods":["POST"]}]}', "methods is given twice"],
  ])("refuses %j", (text, problem) => {
    expect(() => rulesFromText(text)).toThrow(problem);
  });
});
