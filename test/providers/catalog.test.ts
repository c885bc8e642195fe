import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCatalog, loadProviders } from "../../src/providers/catalog.js";
import { ProviderDefinitionError } from "../../src/providers/provider.js";
import { providerFrom } from "./provider-for-test.js";

describe("createCatalog()", () => {
  const catalog = createCatalog([
    providerFrom({ name: "one", aliases: ["uno", "eins"] }),
    providerFrom({ name: "two" }),
    providerFrom({ name: "one", aliases: ["uno"], displayName: "One again" }),
  ]);

  it("finds by name and alias, and lists each provider once", async () => {
    expect(catalog.find("uno")).toBe(catalog.find("one"));
    expect((await catalog.list()).map(({ name }) => name)).toEqual(["one", "two"]);
  });

  it("lets a later definition replace an earlier one, aliases included", () => {
    expect(catalog.find("one")?.displayName).toBe("One again");
    expect(catalog.find("eins")).toBeUndefined();
  });

  it.each(["", "One", "ONE", "one ", "../one", "one%2f", "__proto__", "constructor", "toString", "%E0%A4%A", "three"])(
    "does not find %j (U42)",
    (name) => {
      expect(catalog.find(name)).toBeUndefined();
    },
  );

  it("refuses a name or alias for two providers, and says all of them", () => {
    const create = () =>
      createCatalog([
        providerFrom({ name: "one", aliases: ["x", "two"] }),
        providerFrom({ name: "two", aliases: ["x"] }),
      ]);
    expect(create).toThrow(ProviderDefinitionError);
    expect(create).toThrow(
      "one: aliases[1]: two is already an alias or the name of two\ntwo: aliases[0]: x is already an alias or the name of one",
    );
  });
});

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
    const define = (displayName: string) =>
      JSON.stringify({ name: "github", displayName, apiOrigins: ["https://api.github.com"] });
    await put("a.json", define("folder a"));
    await put("b.json", define("folder b"));
    await put("ignored.txt", "no json");
    const file = await put("own.definition", define("file"));
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
