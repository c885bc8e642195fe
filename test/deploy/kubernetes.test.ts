import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { Service } from "kubernetes-models/v1/Service";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { parseConfig, unknownSettings } from "../../src/config/config.js";
import { HEALTH_PATHS } from "../../src/http/dispatch.js";

const FOLDER = "docs/deploy/kubernetes";
const KINDS = { Deployment, NetworkPolicy, PodDisruptionBudget, Service };

// biome-ignore lint/suspicious/noExplicitAny: YAML of another program, which the schemas judge.
type Manifest = any;

const files = readdirSync(FOLDER).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
const manifests: readonly Manifest[] = files.flatMap((name) =>
  parseAllDocuments(readFileSync(`${FOLDER}/${name}`, "utf8")).map((document) => document.toJS()),
);
const one = (kind: string) => manifests.find((each) => each.kind === kind);
const settings = parseEnv(readFileSync(`${FOLDER}/settings.env`, "utf8")) as Record<string, string>;

function problemOf(manifest: Manifest): string | undefined {
  const unread = new Set<string>();
  try {
    // Of its own objects a model makes copies, which reads everything.
    KINDS[manifest.kind as keyof typeof KINDS].prototype.validate.call(watched(manifest, "", unread));
  } catch (error) {
    return (error as Error).message;
  }
  return unread.size === 0 ? undefined : `not in the schema: ${[...unread].join(", ")}`;
}

/** The schemas let unknown fields pass, as old clients must; what they never read they do not know. */
function watched(value: Manifest, path: string, unread: Set<string>): Manifest {
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, watched(inner, `${path}/${key}`, unread)] as const);
  const copy = Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
  if (!Array.isArray(value)) for (const [key] of entries) unread.add(`${path}/${key}`);
  return new Proxy(copy, {
    get(target, key) {
      unread.delete(`${path}/${String(key)}`);
      return Reflect.get(target, key);
    },
  });
}

describe(FOLDER, () => {
  it.each(manifests.map((each) => [`${each.kind} ${each.metadata.name}`, each] as const))(
    "has a %s as the schemas of Kubernetes want it",
    (_, manifest) => {
      expect(problemOf(manifest)).toBeUndefined();
    },
  );

  it.each([
    ["a number that is a text", "replicas: 2", "replicas: two"],
    ["a probe of another form", "httpGet: { path: /healthz, port: public }", "httpGet: [/healthz]"],
    ["a container without a name", "name: relay\n          image", "title: relay\n          image"],
    ["a field that is misspelt", "readOnlyRootFilesystem", "readOnlyRootFileSystem"],
  ])("would not have %s", (_, right, wrong) => {
    const text = readFileSync(`${FOLDER}/deployment.yaml`, "utf8");
    expect(text).toContain(right);
    expect(problemOf(parse(text.replace(right, wrong)))).toBeDefined();
  });

  it("is listed whole in its kustomization", () => {
    const { resources, configMapGenerator } = parse(readFileSync(`${FOLDER}/kustomization.yaml`, "utf8"));
    expect([...resources].sort()).toEqual(files.sort());
    expect(configMapGenerator[0].envs).toEqual(["settings.env"]);
  });

  it("starts the relay with settings that there are, and every secret as a file", () => {
    const [container] = one("Deployment").spec.template.spec.containers;
    const env = Object.fromEntries(
      container.env.map((each: { name: string; value: string }) => [each.name, each.value]),
    );
    expect(unknownSettings({ ...settings, ...env })).toEqual([]);
    const image = { RELAY_LISTEN: "0.0.0.0:8080", RELAY_ADMIN_LISTEN: "0.0.0.0:8081", NODE_ENV: "production" };
    expect(parseConfig({ ...image, ...settings, ...env })).toHaveProperty("config");
    const { mountPath } = container.volumeMounts.find(({ name }: { name: string }) => name === "secrets");
    const named = [
      env.RELAY_KEY_FILE,
      env.RELAY_ADMIN_TOKEN_FILE,
      container.args[container.args.indexOf("--env-file") + 1],
    ];
    for (const path of named) expect(path.startsWith(`${mountPath}/`)).toBe(true);
    expect(JSON.stringify(manifests)).not.toMatch(/secretKeyRef|secretRef|password/i);
  });

  it("asks the paths and ports that there are, and gives a stop the time that it takes", () => {
    const { containers, terminationGracePeriodSeconds, securityContext } = one("Deployment").spec.template.spec;
    const [container] = containers;
    const ports = new Set(container.ports.map(({ name }: { name: string }) => name));
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      const { path, port } = container[probe].httpGet;
      expect([Object.values(HEALTH_PATHS).includes(path), ports.has(port)]).toEqual([true, true]);
    }
    expect(container.readinessProbe.httpGet.path).toBe(HEALTH_PATHS.readiness);
    expect(container.livenessProbe.httpGet.path).toBe(HEALTH_PATHS.liveness);
    expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(40);
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } });
    for (const service of manifests.filter(({ kind }) => kind === "Service")) {
      for (const { targetPort } of service.spec.ports) expect(ports.has(targetPort)).toBe(true);
    }
  });

  it("selects its own pods everywhere", () => {
    const labels = one("Deployment").spec.template.metadata.labels;
    for (const { kind, spec } of manifests) {
      const selector = spec.selector?.matchLabels ?? spec.selector ?? spec.podSelector.matchLabels;
      expect([kind, labels]).toEqual([kind, expect.objectContaining(selector)]);
    }
  });

  const built = builtByKubectl();
  it.skipIf(built === undefined)("is built by kubectl kustomize (kubectl)", () => {
    const all = parseAllDocuments(built ?? "").map((document): Manifest => document.toJS());
    expect(all.map(({ kind }) => kind).sort()).toEqual(["ConfigMap", ...manifests.map(({ kind }) => kind)].sort());
    for (const each of all.filter(({ kind }) => kind !== "ConfigMap")) expect(problemOf(each)).toBeUndefined();
    const map = all.find(({ kind }) => kind === "ConfigMap");
    expect(map.data).toEqual(settings);
    const deployment = all.find(({ kind }) => kind === "Deployment");
    expect(deployment.spec.template.spec.containers[0].envFrom[0].configMapRef.name).toBe(map.metadata.name);
  });
});

function builtByKubectl(): string | undefined {
  try {
    return execFileSync("kubectl", ["kustomize", FOLDER], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
