import { readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADMIN_TOKENS, type Harness, startHarness } from "../support/harness.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

async function get(path: string, method: "GET" | "HEAD" | "POST" = "GET") {
  const { statusCode, headers, body } = await request(harness.adminUrl + path, { method });
  return { statusCode, headers, text: await body.text() };
}

describe("the console's files", () => {
  it("are there without a token, by their names alone", async () => {
    const page = await get("/console/");
    expect([page.statusCode, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    for (const path of ["/", "/console"]) {
      const { statusCode, headers } = await get(path);
      expect([path, statusCode, headers["location"]]).toEqual([path, 303, "/console/"]);
    }
    for (const [, name = ""] of page.text.matchAll(/(?:src|href)="([^"]+)"/g)) {
      expect([name, (await get(`/console/${name}`)).statusCode]).toEqual([name, 200]);
    }
    for (const path of ["../package.json", "%2e%2e/main.js", "index.html", "main.ts", "lit-html.d.ts", "x", "a/b"]) {
      expect([path, (await get(`/console/${path}`)).statusCode]).toEqual([path, 404]);
    }
  });

  it("are all that a module asks for", async () => {
    const names = readdirSync("dist/src/console").filter((name) => name.endsWith(".js"));
    for (const name of names) {
      const { text } = await get(`/console/${name}`);
      for (const [, imported = ""] of text.matchAll(/from "\.\/([^"]+)"/g)) {
        expect([imported, (await get(`/console/${imported}`)).statusCode]).toEqual([imported, 200]);
      }
      // A browser knows no packages. The one module whose text is a program for others is left out.
      if (name !== "snippets.js") expect([name, /from "[^.]/.test(text)]).toEqual([name, false]);
    }
  });

  it("are few: all scripts of the page stay under 120 KiB, compressed", async () => {
    const names = readdirSync("dist/src/console").filter((name) => name.endsWith(".js"));
    const scripts = await Promise.all([...names, "lit-html.js", "uqr.js"].map((name) => get(`/console/${name}`)));
    const bytes = scripts.map(({ statusCode, text }) => (statusCode === 200 ? gzipSync(text).length : Number.NaN));
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThan(120 * 1024);
  });

  it("forbid everything that they do not need", async () => {
    for (const path of ["/", "/console/", "/console/console.js", "/console/console.css"]) {
      const { headers } = await get(path);
      expect(headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "content-security-policy":
          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types lit-html",
      });
    }
    expect((await get("/console/")).text).not.toMatch(/<script>|<style|style=|\son\w+=|javascript:/);
  });

  it("answer HEAD, and 405 to anything that would change something", async () => {
    expect(await get("/console/", "HEAD")).toMatchObject({ statusCode: 200, text: "" });
    expect(await get("/console/", "POST")).toMatchObject({ statusCode: 405, headers: { allow: "GET, HEAD" } });
  });

  it("are not on the public port", async () => {
    for (const path of ["/console", "/console/", "/console/console.js", "/console/sign-in"]) {
      const { statusCode, body } = await request(harness.url + path);
      await body.dump();
      expect([path, statusCode]).toEqual([path, 404]);
    }
  });

  it("hold no token", async () => {
    for (const name of ["", ...readdirSync("dist/src/console")]) {
      const { text } = await get(`/console/${name}`);
      for (const token of Object.values(ADMIN_TOKENS)) expect(text).not.toContain(token);
    }
  });
});
