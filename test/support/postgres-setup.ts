import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { TestProject } from "vitest/node";
import { type PostgresServer, startPostgresServer } from "./postgres-server.js";

declare module "vitest" {
  interface ProvidedContext {
    /** Where a test file asks for PostgreSQL. */
    postgresPort: number;
  }
}

/**
 * One PostgreSQL for all test files, started when the first of them asks for it: most runs of a single file need none.
 * What is answered is its URL, or an empty line when it cannot start; then its tests are skipped, and it says so once.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let starting: Promise<PostgresServer | undefined> | undefined;
  const desk = createServer(async (socket) => {
    socket.on("error", () => {});
    starting ??= startOrSay();
    socket.end(`${(await starting)?.url ?? ""}\n`);
  });
  desk.listen(0, "127.0.0.1");
  await once(desk, "listening");
  project.provide("postgresPort", (desk.address() as AddressInfo).port);
  return async () => {
    desk.close();
    await (await starting)?.close();
  };
}

async function startOrSay(): Promise<PostgresServer | undefined> {
  try {
    return await startPostgresServer();
  } catch (error) {
    process.stderr.write(`PostgreSQL cannot start here, its tests are skipped: ${(error as Error).message}\n`);
    return undefined;
  }
}
