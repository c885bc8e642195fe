import { existsSync } from "node:fs";
import type { Config } from "../config/config.js";

/** What is wrong with the file of admin tokens; one that is still to be made is fine. Nothing is made. */
export async function adminTokenProblems(config: Config): Promise<string[]> {
  const { adminListen, adminTokenFile, keyFileMustExist } = config;
  if (adminListen === "off" || (!keyFileMustExist && !existsSync(adminTokenFile))) return [];
  const [{ loadAdminTokens }, { AdminTokenFileError }] = await Promise.all([
    import("../admin/load-tokens.js"),
    import("../admin/token-file.js"),
  ]);
  try {
    await loadAdminTokens(adminTokenFile, { mustExist: true, onCreated: () => {} });
    return [];
  } catch (error) {
    if (!(error instanceof AdminTokenFileError)) throw error;
    return [`RELAY_ADMIN_TOKEN_FILE: ${error.message}`];
  }
}
