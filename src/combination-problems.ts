import { isIP } from "node:net";
import { isLoopbackHost } from "./address-list.js";
import type { Config, ListenAddress } from "./config.js";

/** Settings that are each fine but not together. */
export function combinationProblems(config: Config): string[] {
  const problems = [
    ...listenProblems(config, "RELAY_LISTEN", config.listen),
    ...(config.adminListen === "off" ? [] : listenProblems(config, "RELAY_ADMIN_LISTEN", config.adminListen)),
  ];
  if (config.adminListen !== "off" && isSamePort(config.listen, config.adminListen)) {
    problems.push("RELAY_ADMIN_LISTEN: must be another port than that of RELAY_LISTEN");
  }
  if (config.allowLoopback && config.keyFileMustExist) {
    problems.push("RELAY_ALLOW_LOOPBACK: is for development and cannot be used with NODE_ENV=production");
  }
  if ((config.tlsCertFile === undefined) !== (config.tlsKeyFile === undefined)) {
    problems.push("RELAY_TLS_CERT, RELAY_TLS_KEY: set both or neither");
  }
  return problems;
}

function listenProblems({ allowLoopback }: Config, name: string, { host }: ListenAddress): string[] {
  if (isIP(host) === 0 && host !== "localhost") return [`${name}: the host must be an IP address or localhost`];
  if (!allowLoopback || isLoopbackHost(host)) return [];
  return [`RELAY_ALLOW_LOOPBACK: is for development and cannot be used with a non-loopback ${name}`];
}

/** Two ports that the system chooses are never the same. */
function isSamePort(one: ListenAddress, other: ListenAddress): boolean {
  return one.port !== 0 && one.port === other.port && one.host === other.host;
}
