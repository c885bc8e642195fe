import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadProviders } from "../../src/providers/catalog.js";
import { ProviderDefinitionError } from "../../src/providers/provider.js";

describe("loadProviders()", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "relay-providers-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const put = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const failure = (paths: string[]) => {
    try {
      loadProviders({ paths, allowLoopback: false });
    } catch (error) {
      if (error instanceof ProviderDefinitionError) return error.message.split("\n");
    }
    throw new Error("no ProviderDefinitionError");
  };

  const define = (members: { readonly name: string; readonly [member: string]: unknown }) =>
    JSON.stringify({ apiOrigins: ["https://api.example.com"], ...members });
  const loadDefined = async (...texts: string[]) => {
    const paths = await Promise.all(texts.map((text, at) => put(`${at}.definition`, text)));
    return loadProviders({ paths, allowLoopback: false }).catalog;
  };
  const loadTwo = () =>
    loadDefined(
      define({ name: "first", aliases: ["uno", "eins"] }),
      define({ name: "second" }),
      define({ name: "first", aliases: ["uno"], displayName: "First again" }),
    );

  it("finds by name and alias, and lists each provider once", async () => {
    const catalog = await loadTwo();
    expect(catalog.find("uno")).toBe(catalog.find("first"));
    const names = (await catalog.list()).map(({ name }) => name);
    expect(names.filter((name) => name === "first" || name === "second")).toEqual(["first", "second"]);
  });

  it("lets a later definition replace an earlier one, aliases included", async () => {
    const catalog = await loadTwo();
    expect(catalog.find("first")?.displayName).toBe("First again");
    expect(catalog.find("eins")).toBeUndefined();
  });

  it.each(["", "First", "FIRST", "first ", "../first", "first%2f", "__proto__", "constructor", "toString", "%E0%A4%A"])(
    "does not find %j (U42)",
    async (name) => {
      expect((await loadTwo()).find(name)).toBeUndefined();
    },
  );

  it("refuses a name or alias for two providers, and says all of them", async () => {
    await put("a.json", define({ name: "first", aliases: ["x-alias", "second"] }));
    await put("b.json", define({ name: "second", aliases: ["x-alias"] }));
    expect(failure([folder])).toEqual([
      "first: aliases[1]: second is already an alias or the name of second",
      "second: aliases[0]: x-alias is already an alias or the name of first",
    ]);
  });

  it("reads the shipped definitions", async () => {
    const { catalog } = loadProviders({ paths: [], allowLoopback: false });
    expect(catalog.find("github")?.displayName).toBe("GitHub");
    expect((await catalog.list()).length).toBeGreaterThanOrEqual(13);
  });

  it("parses a shipped definition once, when it is asked for, and lists all a few at a time", async () => {
    const { catalog } = loadProviders({ paths: [], allowLoopback: false });
    const github = catalog.find("github");
    let turns = 0;
    const counter = setInterval(() => turns++, 0);
    const listed = await catalog.list();
    clearInterval(counter);
    expect(turns).toBeGreaterThan(0);
    expect(listed).toContain(github);
    expect(catalog.find("gmail")).toBe(catalog.find("googlemail"));
  });

  it("reads files and folders, later over earlier", async () => {
    await put("a.json", define({ name: "github", displayName: "folder a" }));
    await put("b.json", define({ name: "github", displayName: "folder b" }));
    await put("ignored.txt", "no json");
    const file = await put("own.definition", define({ name: "github", displayName: "file" }));
    const display = (paths: string[]) =>
      loadProviders({ paths, allowLoopback: false }).catalog.find("github")?.displayName;
    expect(display([folder])).toBe("folder b");
    expect(display([folder, file])).toBe("file");
    expect(display([file, folder])).toBe("folder b");
  });

  it("reports every problem of every file at once", async () => {
    await put("a.json", '{"name":"A","apiOrigins":["http://a.example"]}');
    await put("b.json", '{"name":"b","apiOrigin":[]}');
    await put("c.json", '{"name":"c","aliases":["github"],"apiOrigins":["https://c.example"]}');
    await put("d.json", " ".repeat(256 * 1024 + 1));
    expect(failure([folder, join(folder, "missing.json")])).toEqual([
      expect.stringMatching(/\/a\.json: name: must be /),
      expect.stringMatching(/\/a\.json: apiOrigins\[0\]: must use https/),
      `${join(folder, "b.json")}: apiOrigin: unknown field. Did you mean apiOrigins?`,
      `${join(folder, "d.json")}: is larger than 262144 bytes`,
      `${join(folder, "missing.json")}: cannot be read (ENOENT)`,
      "c: aliases[0]: github is already an alias or the name of github",
    ]);
  });

  it("takes loopback http only when told", async () => {
    const file = await put("local.json", '{"name":"local","apiOrigins":["http://127.0.0.1:8090"]}');
    expect(failure([file])).toHaveLength(1);
    const { catalog } = loadProviders({ paths: [file], allowLoopback: true });
    expect(catalog.find("local")?.exactOrigins.has("http://127.0.0.1:8090")).toBe(true);
  });
});
