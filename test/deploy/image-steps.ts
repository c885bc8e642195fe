import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { DockerfileParser, type Env, type Instruction } from "dockerfile-ast";

const run = promisify(execFile);
const CHECKOUT = process.cwd();
const BINARY = "node_modules/better-sqlite3/build/Release";

/** What an image says of its process, with its paths below the folder that stands in for its root. */
export interface Image {
  readonly env: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
  readonly workingFolder: string;
  readonly user: { readonly uid: number; readonly gid: number };
  /** RUN commands as they were run, and those that something else stood in for. */
  readonly ran: readonly string[];
  readonly stoodIn: readonly string[];
}

/** Commands that are not run as they stand, and what stands in: the checkout was installed and compiled already. */
const STAND_INS: ReadonlyArray<readonly [RegExp, (folder: string) => void]> = [
  [/^(apt-get|rm -rf \/var\/lib\/apt)/, () => {}],
  [/^npm ci$/, () => {}],
  [
    /^npm rebuild better-sqlite3$/,
    (folder) => {
      mkdirSync(join(folder, BINARY), { recursive: true });
      copyFileSync(join(CHECKOUT, BINARY, "better_sqlite3.node"), join(folder, BINARY, "better_sqlite3.node"));
    },
  ],
];

/**
 * Follows a Dockerfile step by step without a container engine: its absolute paths lie below `root`, the checkout is the
 * folder it copies, and both stages share that root.
 */
export async function buildImage(dockerfile: string, root: string): Promise<Image> {
  const below = (text: string) => pathsBelow(text, root);
  const image = {
    env: {},
    command: [],
    healthcheck: [],
    workingFolder: "/",
    user: { uid: 0, gid: 0 },
    ran: [],
    stoodIn: [],
  };
  let built: Image = image;
  for (const instruction of DockerfileParser.parse(dockerfile).getInstructions()) {
    built = await follow(built, instruction, below);
  }
  return built;
}

async function follow(image: Image, instruction: Instruction, below: (text: string) => string): Promise<Image> {
  const text = instruction.getArgumentsContent() ?? "";
  switch (instruction.getKeyword()) {
    case "WORKDIR":
      mkdirSync(below(text), { recursive: true });
      return { ...image, workingFolder: below(text) };
    case "RUN":
      return runCommands(image, instruction.getRawArgumentsContent() ?? "", below);
    case "ENV":
      return { ...image, env: { ...image.env, ...envFrom(instruction as Env, below) } };
    case "USER": {
      const [uid = 0, gid = 0] = text.split(":").map(Number);
      return { ...image, user: { uid, gid } };
    }
    case "HEALTHCHECK":
    case "CMD": {
      const raw = instruction.getRawArgumentsContent() ?? "";
      const command = (JSON.parse(raw.slice(raw.indexOf("["))) as string[]).map(below);
      return { ...image, [instruction.getKeyword() === "CMD" ? "command" : "healthcheck"]: command };
    }
    default:
      return image;
  }
}

async function runCommands(image: Image, text: string, below: (text: string) => string): Promise<Image> {
  const [ran, stoodIn] = [[...image.ran], [...image.stoodIn]];
  for (const command of text.split("&&").map((each) => each.replaceAll("\\\n", " ").trim())) {
    const standIn = STAND_INS.find(([pattern]) => pattern.test(command));
    if (standIn !== undefined) {
      standIn[1](image.workingFolder);
      stoodIn.push(command);
      continue;
    }
    // The build and the registry's packages are here already.
    const env = { ...process.env, npm_config_ignore_scripts: "true", npm_config_prefer_offline: "true" };
    await run("bash", ["-euc", below(command)], { cwd: image.workingFolder, env });
    ran.push(command);
  }
  return { ...image, ran, stoodIn };
}

function envFrom(instruction: Env, below: (text: string) => string): Record<string, string> {
  return Object.fromEntries(instruction.getProperties().map((each) => [each.getName(), below(each.getValue() ?? "")]));
}

/** The image's own folders; others, such as those of the machine's programs, stay what they are. */
function pathsBelow(text: string, root: string): string {
  return text
    .replace(/(?<=^|[\s:=])\/(?=(?:app|data|tmp|run|usr\/local\/bin)(?:\/|\s|$))/g, `${root}/`)
    .replace(/(?<=^|[\s:=])\/checkout(?=\/|\s|$)/g, CHECKOUT);
}
