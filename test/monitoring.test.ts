import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import net from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { unknownSettings } from "../src/config/config.js";
import { REASONS } from "../src/model/errors.js";
import { createCallers, postRest } from "./support/callers.js";
import { parseExposition, type Sample } from "./support/exposition.js";
import { type Harness, startHarness } from "./support/harness.js";
import { namesOf } from "./support/promql.js";
import { scrapeText } from "./support/scrape.js";

/** Labels that Prometheus adds to whatever it scrapes. */
const TARGET_LABELS = ["instance", "job"];

/** Values of labels that documents may name, whether or not a test can make them happen. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  error_type: [...Object.keys(REASONS), "API_ERROR", "none"],
  outcome: ["refreshed", "lost", "ended", "misconfigured", "refused", "failed", "delivered", "retry", "given_up"],
  status_class: ["2xx", "3xx", "4xx", "5xx"],
  where: ["client", "session"],
  stat: ["p50", "p99", "max"],
  state: ["active", "reauthorization_required"],
};

interface Query {
  readonly where: string;
  readonly expr: string;
  /** Text in which labels of the result are named. */
  readonly texts: readonly string[];
}

const dashboard = JSON.parse(readFileSync("docs/grafana-dashboard.json", "utf8"));
const alerts = parse(readFileSync("docs/alerts.yaml", "utf8"));
const monitoring = readFileSync("docs/monitoring.md", "utf8");

let harness: Harness;
let text: string;
let samples: Sample[];

/** A relay that has done a little of everything. */
beforeAll(async () => {
  harness = await startHarness();
  const application = await harness.createApplication();
  await harness.putClient(application);
  await harness.connect(application, "ada");
  const refreshToken = harness.sandbox.issueToken().refresh_token as string;
  await harness.connect(application, "bob", { refreshToken, expiresAt: 1 });
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  const described = { providerName: "sandbox", userId: "ada", publicKey: application.publicKey, call };
  for (const [, caller] of createCallers(harness.url)) await caller(described);
  await postRest(harness.url, { ...described, userId: "bob" });
  const socket = net
    .connect(Number(new URL(harness.url).port), "127.0.0.1")
    .on("error", () => {})
    .resume();
  socket.write("nonsense\r\n\r\n");
  await once(socket, "close");
  text = await scrapeText(harness.adminUrl);
  samples = parseExposition(text);
});

afterAll(() => harness.close());

/** Labels of a metric, by the name that a query has. */
function labelsOf(name: string): Set<string> {
  return new Set(samples.filter((sample) => sample.name === name).flatMap(({ labels }) => Object.keys(labels)));
}

function panelQueries(): Query[] {
  // biome-ignore lint/suspicious/noExplicitAny: JSON of another program.
  const panels = dashboard.panels.filter(({ targets }: any) => targets !== undefined) as any[];
  return panels.flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat }: { expr: string; legendFormat: string }) => ({
      where: `panel ${title}`,
      expr: expr.replaceAll("$__rate_interval", "5m"),
      texts: [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label as string),
    })),
  );
}

function alertQueries(): Query[] {
  return alerts.groups.flatMap(({ rules }: { rules: Array<{ alert: string; expr: string; annotations: object }> }) =>
    rules.map(({ alert, expr, annotations }) => ({
      where: `alert ${alert}`,
      expr,
      texts: [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label as string),
    })),
  );
}

describe.each([
  ["docs/grafana-dashboard.json", panelQueries()],
  ["docs/alerts.yaml", alertQueries()],
])("%s", (_file, queries) => {
  it.each(queries.map((query) => [query.where, query] as const))("%s asks for what /metrics has", (_where, query) => {
    const { metrics, groupings } = namesOf(query.expr);
    expect(metrics.length).toBeGreaterThan(0);
    const known = new Set([...TARGET_LABELS, ...metrics.flatMap(({ name }) => [...labelsOf(name)])]);
    for (const { name, matchers } of metrics) {
      expect([name, samples.some((sample) => sample.name === name)]).toEqual([name, true]);
      for (const { label, value } of matchers) {
        expect([name, label, known.has(label)]).toEqual([name, label, true]);
        const named = value.startsWith("$") ? [] : value.split("|");
        if (!TARGET_LABELS.includes(label)) expect(VALUES[label] ?? []).toEqual(expect.arrayContaining(named));
      }
    }
    expect([...known]).toEqual(expect.arrayContaining([...groupings]));
    // A legend or a summary can only name what the query left.
    const left = groupings.length > 0 ? groupings : [...known];
    expect(left).toEqual(expect.arrayContaining([...query.texts]));
  });
});

describe("docs/grafana-dashboard.json", () => {
  it("fills its variables from what /metrics has", () => {
    const queries = dashboard.templating.list.flatMap(({ definition }: { definition?: string }) => definition ?? []);
    expect(queries.length).toBeGreaterThan(1);
    for (const query of queries) {
      const [, name = "", label = ""] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? [];
      expect([name, [...TARGET_LABELS, ...labelsOf(name)].includes(label)]).toEqual([name, true]);
    }
  });
});

describe("docs/runbooks.md", () => {
  const runbooks = readFileSync("docs/runbooks.md", "utf8");

  it("has a section for each alert, which the alert names, and no other", () => {
    const rules = alerts.groups.flatMap(
      ({ rules }: { rules: Array<{ alert: string; annotations: { runbook?: string } }> }) => rules,
    );
    const sections = [...runbooks.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(rules.map(({ alert }: { alert: string }) => alert).sort()).toEqual(sections.sort());
    for (const { alert, annotations } of rules) {
      expect([alert, annotations.runbook]).toEqual([alert, `docs/runbooks.md#${alert.toLowerCase()}`]);
    }
  });

  it("names metrics that /metrics has, and settings that there are", () => {
    const names = [...runbooks.matchAll(/\b((?:relay|process|nodejs)_[a-z_]+)\b/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(10);
    const known = new Set(samples.flatMap(({ name }) => [name, name.replace(/_(?:bucket|count|sum)$/, "")]));
    expect(names.filter((name) => !known.has(name))).toEqual([]);
    const settings = [...runbooks.matchAll(/\bRELAY_[A-Z_]+\b/g)].map(([name]) => name);
    expect(unknownSettings(Object.fromEntries(settings.map((name) => [name, "x"])))).toEqual([]);
  });
});

describe("docs/monitoring.md", () => {
  it("lists every field of a call's log line, and no other", () => {
    const table = monitoring.slice(monitoring.indexOf("<!-- log fields -->")).split("\n\n")[0] ?? "";
    const documented = [...table.matchAll(/^\| `(\w+)` \| (\S[^|]*) \|/gm)].map(([, name = ""]) => name);
    const lines = harness.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "call");
    expect(lines.length).toBeGreaterThan(4);
    const logged = new Set(lines.flatMap((line) => Object.keys(line)));
    expect([...logged].filter((name) => !documented.includes(name))).toEqual([]);
    const source = readFileSync("src/telemetry/call-log.ts", "utf8");
    const written = [...source.matchAll(/(?:,"(\w+)":[$"]|(?:member|quoted|time)\("(\w+)")/g)].map(
      ([, a, b]) => a ?? b,
    );
    expect([...documented].sort()).toEqual([...new Set([...written, "level", "time", "msg", "worker"])].sort());
  });

  it("lists every metric with its labels and help, and no other", () => {
    const table = monitoring.slice(monitoring.indexOf("<!-- metrics -->")).split("\n\n")[0] ?? "";
    const rows = table.split("\n").filter((line) => line.startsWith("| `"));
    const documented = rows.map((row) => {
      const [, name = "", labels = "", help = ""] = row.split("|").map((cell) => cell.trim().replaceAll("`", ""));
      return [name, labels.split(", ").filter(Boolean).sort(), help];
    });
    const helps = [...text.matchAll(/^# HELP (\S+) (.+)$/gm)];
    const found = helps.map(([, name = "", help = ""]) => {
      const labels = [...labelsOf(name), ...labelsOf(`${name}_count`)].filter((label) => label !== "le");
      return [name, labels.sort(), help];
    });
    const byName = (rows: unknown[][]) => rows.sort(([one], [other]) => String(one).localeCompare(String(other)));
    expect(byName(documented)).toEqual(byName(found));
  });

  it("names the versions of the SDK that it is tested with", () => {
    const { devDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
    const named = [...monitoring.matchAll(/(@opentelemetry\/[\w-]+)@([\d.]+)/g)].map(([, name, version]) => [
      name,
      version,
    ]);
    expect(named).toHaveLength(2);
    for (const [name, version] of named) expect([name, devDependencies[name ?? ""]]).toEqual([name, version]);
  });

  it("links to files that are there", () => {
    const links = [...monitoring.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path]) => `docs/${path}`);
    expect(links.filter((path) => !existsSync(path))).toEqual([]);
  });
});
