import { statSync } from "node:fs";
import { isLoopbackHost } from "../lib/address-list.js";
import { type Config, unknownSettings } from "./config.js";

/** Something about a setting that the operator should know, and why. */
export interface SettingRemark {
  readonly setting: string;
  readonly text: string;
}

const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

const CLEARTEXT =
  "can be reached without TLS: set RELAY_TLS_CERT and RELAY_TLS_KEY, or let only a proxy with TLS reach it";

/**
 * What does not stop a start and is worth a warning: settings that this version does not know, proxies that are not used,
 * admin tokens that cross a network in cleartext, secrets that others can read.
 */
export function configWarnings(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): readonly SettingRemark[] {
  const { adminListen, tlsCertFile, keyFileMustExist } = config;
  const unknown = unknownSettings(env).map((setting) => ({
    setting,
    text: "is not a setting of this version and is ignored",
  }));
  const proxies = PROXIES.filter((name) => env[name]).map((setting) => ({
    setting,
    text: "is ignored: the relay connects to providers itself, since it judges the address that it dials",
  }));
  const isCleartext = adminListen !== "off" && tlsCertFile === undefined && !isLoopbackHost(adminListen.host);
  return [
    ...unknown,
    ...proxies,
    ...(isCleartext ? [{ setting: "RELAY_ADMIN_LISTEN", text: CLEARTEXT }] : []),
    ...exposedFiles(config).filter(({ isToAll }) => !(isToAll && keyFileMustExist)),
  ];
}

/** Secrets that every user of the machine can read: in production they stop the start. */
export function exposureProblems(config: Config): readonly string[] {
  if (!config.keyFileMustExist) return [];
  return exposedFiles(config).flatMap(({ setting, text, isToAll }) => (isToAll ? [`${setting}: ${text}`] : []));
}

function exposedFiles(config: Config): ReadonlyArray<SettingRemark & { readonly isToAll: boolean }> {
  const { keyFile, adminTokenFile, adminListen, tlsKeyFile } = config;
  const files = [
    ["RELAY_KEY_FILE", keyFile],
    ["RELAY_ADMIN_TOKEN_FILE", adminListen === "off" ? undefined : adminTokenFile],
    ["RELAY_TLS_KEY", tlsKeyFile],
  ] as const;
  return files.flatMap(([setting, file]) => {
    const stats = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    if (stats === undefined) return [];
    const isToAll = (stats.mode & 0o004) !== 0;
    // A process that is not the owner reads the file by its group: that is how a mounted secret is shared.
    const isToGroup = (stats.mode & 0o040) !== 0 && stats.uid === process.getuid?.();
    const others = isToAll ? "every user of this machine" : "its group";
    return isToAll || isToGroup ? [{ setting, text: `${file} can be read by ${others}; chmod 0600 it`, isToAll }] : [];
  });
}
