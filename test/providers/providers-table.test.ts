import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { loadProviders } from "../../src/providers/catalog.js";
import { providersTable, REGENERATE } from "../support/providers-table.js";
import { providerFrom } from "./provider-for-test.js";

const rowsOf = (table: string) => table.split("\n").filter((line) => line.startsWith("| [`"));

describe("docs/providers.md", () => {
  it("is what the shipped definitions say", () => {
    const { catalog } = loadProviders({ paths: [], allowLoopback: false });
    const written = readFileSync("docs/providers.md", "utf8");
    expect(written, `docs/providers.md is out of date, write it with: ${REGENERATE}`).toBe(
      providersTable(catalog.list()),
    );
  });
});

describe("providersTable()", () => {
  it("lists providers by name, with their origins and habits", () => {
    const table = providersTable([
      providerFrom({ name: "b", displayName: "B | C", documentationUri: "https://b.example/docs" }),
      providerFrom({
        name: "a",
        aliases: ["aa"],
        displayName: "A",
        documentationUri: "https://a.example/docs",
        apiOrigins: ["https://api.a.example", "https://{shop}.a.example"],
        credential: { header: "x-token" },
        defaultHeaders: { accept: "application/json" },
        expirySignals: [{ statusCode: 403, member: "err", values: ["x"] }, { statusCode: 498 }],
        oauth2: {
          tokenEndpoint: "https://a.example/token",
          refreshEndpoint: "https://a.example/refresh",
          revocationEndpoint: "https://a.example/revoke",
          tokenRequestFormat: "json",
          tokenResponseMember: "body",
          tokenErrorMember: "status",
          refreshEndedErrors: ["gone"],
          pkce: true,
          scopeSeparator: ",",
          clientIdParameter: "client_key",
          defaultExpiresIn: 60,
          refreshTokenRotation: true,
        },
      }),
    ]);
    expect(rowsOf(table)).toEqual([
      "| [`a`](../src/providers/catalog/a.json), `aa` | [A](https://a.example/docs) | `https://api.a.example`<br>`https://{shop}.a.example` | token in `x-token: …`; sends `accept`; `client_secret_basic`; PKCE; JSON token requests; refresh endpoint of its own; token response in `body`; error code in `status`; ended refresh token: `gone`; tokens assumed to last 60 s; refresh tokens rotate; revocation; scopes separated by `,`; client id as `client_key`; ended token: 403 with `err`; ended token: 498 |",
      "| [`b`](../src/providers/catalog/b.json) | [B \\| C](https://b.example/docs) | `https://api.example.com` |  |",
    ]);
  });
});
