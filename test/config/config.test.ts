import { describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { parseConfig, unknownSettings } from "../../src/config/config.js";
import { nodeProblem } from "../../src/config/runtime-problems.js";
import { SETTINGS } from "../../src/config/setting-list.js";

describe("nodeProblem()", () => {
  const supported = manifest.engines.node;

  it.each([
    "v20.18.0",
    "v20.99.1",
    "v22.12.0",
    "v22.23.1",
    "v24.0.0",
    "v24.18.9",
    "v24.22.0",
    "v26.1.0",
    "v27.0.0-nightly2027",
  ])("lets %s run", (version) => expect(nodeProblem(version, supported)).toBeUndefined());

  it.each(["v18.20.8", "v20.17.9", "v21.7.3", "v22.11.0", "v23.11.1", "v24.19.0", "v24.20.3", "v24.21.0"])(
    "names the versions that work instead of %s",
    (version) => {
      expect(nodeProblem(version, supported)).toBe(
        `Node.js ${version.slice(1)} does not run this relay: install one of ${supported}`,
      );
    },
  );
});

describe("parseConfig()", () => {
  it("reports every problem at once, each with its variable", () => {
    const parsed = parseConfig({
      RELAY_LISTEN: "nowhere",
      RELAY_DATABASE: "mysql://x",
      RELAY_DEADLINE_MS: "1e3",
      RELAY_HTTP_STATUS: "MIRROR",
      RELAY_ALLOW_LOOPBACK: "yes",
    });
    const problems = "problems" in parsed ? parsed.problems : [];
    expect(problems.map((problem) => problem.split(":")[0])).toEqual([
      "RELAY_LISTEN",
      "RELAY_DATABASE",
      "RELAY_ALLOW_LOOPBACK",
      "RELAY_HTTP_STATUS",
      "RELAY_DEADLINE_MS",
    ]);
  });

  it.each([
    ["loopback switch with a public address", { RELAY_ALLOW_LOOPBACK: "true", RELAY_LISTEN: "0.0.0.0:8080" }],
    ["loopback switch in production", { RELAY_ALLOW_LOOPBACK: "true", NODE_ENV: "production" }],
    ["a certificate without its key", { RELAY_TLS_CERT: "cert.pem" }],
    ["TLS verification switched off", { NODE_TLS_REJECT_UNAUTHORIZED: "0" }],
    ["the insecure parser", { NODE_OPTIONS: "--max-old-space-size=512 --insecure-http-parser" }],
    ["a TLS key log", { NODE_OPTIONS: "--tls-keylog=/tmp/keys" }],
    ["header dumps", { NODE_DEBUG: "timer,http" }],
    ["an inspector in production", { NODE_OPTIONS: "--inspect=0.0.0.0:9229", NODE_ENV: "production" }],
    ["a host name to listen on", { RELAY_LISTEN: "relay.example.com:80" }],
    ["a host name for operators", { RELAY_ADMIN_LISTEN: "relay.example.com:81" }],
    ["no port for operators", { RELAY_ADMIN_LISTEN: "OFF" }],
    [
      "loopback switch with a public address for operators",
      { RELAY_ALLOW_LOOPBACK: "1", RELAY_ADMIN_LISTEN: "[::]:81" },
    ],
    ["one port for both", { RELAY_ADMIN_LISTEN: "127.0.0.1:8080" }],
    ["one port by name", { RELAY_ADMIN_LISTEN: "localhost:8080" }],
    ["one port in another spelling", { RELAY_LISTEN: "[::1]:80", RELAY_ADMIN_LISTEN: "[0:0:0:0:0:0:0:1]:80" }],
    ["one port as an IPv4-mapped address", { RELAY_ADMIN_LISTEN: "[::ffff:127.0.0.1]:8080" }],
    ["one port on all addresses for callers", { RELAY_LISTEN: "0.0.0.0:8081" }],
    ["one port on all addresses for operators", { RELAY_ADMIN_LISTEN: "[::]:8080" }],
  ])("refuses %s", (_what, env) => {
    expect(parseConfig(env)).toHaveProperty("problems.length", 1);
  });

  it.each([
    ["0.0.0.0:80", "[::1]:80"],
    ["127.0.0.2:80", "127.0.0.1:80"],
    ["[::]:0", "[::]:0"],
  ])("accepts two addresses that can both be had: %s and %s", (listen, adminListen) => {
    expect(parseConfig({ RELAY_LISTEN: listen, RELAY_ADMIN_LISTEN: adminListen })).toHaveProperty("config");
  });

  it("takes an IPv6 address in any spelling for what it is", () => {
    const parsed = parseConfig({
      RELAY_LISTEN: "[0::0]:80",
      RELAY_ADMIN_LISTEN: "[::0001]:81",
      RELAY_ALLOW_LOOPBACK: "1",
    });
    expect(parsed).toHaveProperty("problems", [
      "RELAY_ALLOW_LOOPBACK: is for development and cannot be used with a non-loopback RELAY_LISTEN",
    ]);
  });

  it("refuses dangerous flags of the process itself", () => {
    expect(parseConfig({}, ["--insecure-http-parser"])).toHaveProperty("problems");
  });

  it("needs no variable at all", () => {
    const parsed = parseConfig({});
    expect(parsed).toMatchObject({
      config: {
        listen: { host: "127.0.0.1", port: 8080 },
        adminListen: { host: "127.0.0.1", port: 8081 },
        database: { kind: "sqlite", path: "data/relay.db" },
        keyFileMustExist: false,
        allowLoopback: false,
        deadlineMs: 30_000,
        httpStatus: "envelope",
      },
    });
  });

  it("takes an empty variable for an unset one", () => {
    expect(parseConfig({ RELAY_LISTEN: "", RELAY_LOG_LEVEL: "" })).toHaveProperty("config.logLevel", "info");
  });
});

describe("unknownSettings()", () => {
  it("finds what is no setting and nothing else", () => {
    const env = { ...Object.fromEntries(SETTINGS.map(({ name }) => [name, "x"])), RELAY_LISTN: "x", PATH: "x" };
    expect(unknownSettings(env)).toEqual(["RELAY_LISTN"]);
  });
});
