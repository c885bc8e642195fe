import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Config } from "../config/config.js";

/** What is wrong with the certificate and the key of the public port, alone and together. */
export async function tlsProblems({ tlsCertFile, tlsKeyFile }: Config): Promise<string[]> {
  const problems: string[] = [];
  const cert = await parsed("RELAY_TLS_CERT", tlsCertFile, (pem) => new X509Certificate(pem), problems);
  const key = await parsed("RELAY_TLS_KEY", tlsKeyFile, createPrivateKey, problems);
  if (cert === undefined || key === undefined) return problems;
  return [...problems, ...pairProblems(cert, key)];
}

async function parsed<Made>(
  setting: string,
  path: string | undefined,
  parse: (pem: Buffer) => Made,
  problems: string[],
): Promise<Made | undefined> {
  if (path === undefined) return undefined;
  const pem = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    problems.push(`${setting}: ${path} cannot be read (${error.code})`);
  });
  if (pem === undefined) return undefined;
  try {
    return parse(pem);
  } catch (error) {
    // The code alone: a text of OpenSSL is for nobody, and may quote what it read.
    problems.push(`${setting}: ${path} cannot be used (${(error as NodeJS.ErrnoException).code ?? "not PEM"})`);
    return undefined;
  }
}

function pairProblems(cert: X509Certificate, key: KeyObject): string[] {
  const problems: string[] = [];
  if (!cert.checkPrivateKey(key)) problems.push("RELAY_TLS_KEY: is not the key of RELAY_TLS_CERT");
  if (Date.parse(cert.validTo) < Date.now()) problems.push(`RELAY_TLS_CERT: has ended (${cert.validTo})`);
  return problems;
}
