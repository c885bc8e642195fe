import { createPrivateKey, type KeyObject } from "node:crypto";
import { MAX_SECRET_LENGTH } from "../providers/connection-value.js";
import { type Assertion, KEY_VALUES, type Provider } from "../providers/provider.js";
import { toldMembersFrom } from "./token-response.js";

/** The values that somebody entered for a connection, by name. */
export interface GivenValues {
  readonly open: ReadonlyMap<string, string>;
  readonly secrets: ReadonlyMap<string, string>;
}

/** What is wrong with a value, as the end of a sentence that begins with its name; never quotes the value. */
export interface GivenProblem {
  readonly parameter: string;
  readonly problem: string;
  readonly isSecret: boolean;
}

/** `BEGIN` and `END` around base64 (RFC 7468); a single-line input field may have removed the line breaks. */
const PEM = /-----BEGIN ((?:RSA |EC |ENCRYPTED )?PRIVATE KEY)-----([A-Za-z0-9+/=\s]*)-----END \1-----/;
/** PKCS #8 in base64, as keys are stored and exported: a sequence whose length takes more than one byte. */
const STORED = /^MI[A-Za-z0-9+/]+={0,2}$/;
/**
 * A key encrypted with a password (RFC 5958 section 3, RFC 8018 appendix A.4) through PBKDF2 (appendix A.2), as hex
 * digits up to the length of the salt. Tags and lengths are matched at their exact places, so that nothing can be
 * hidden in front of the iteration count.
 */
const PBKDF2 =
  /^30(?:[0-7].|81..|82....)30(?:[0-7].|81..)06092a864886f70d01050d30(?:[0-7].|81..)30[0-7].06092a864886f70d01050c30[0-7].04([0-7].)/;
/**
 * PKCS #8 (RFC 5958 section 2) up to its algorithm, which must be RSA or EC: for other kinds OpenSSL computes the
 * public key while it reads, which takes seconds when an attacker chose the numbers.
 */
const PKCS8 = /^30(?:[0-7].|81..|82....)0201(?:00|01)30(?:[0-7].|81..)06..(2a864886f70d010101|2a8648ce3d0201)?/;
/** Largest key, in bytes: an RSA key of 4096 bits has 2400, and 2500 when encrypted. */
const MAX_KEY_BYTES = 2560;
/** Most PBKDF2 iterations: OpenSSL writes 2048; this many block the process for 5 ms. */
const MAX_ROUNDS = 10_000;
/** In bits: RFC 7518 section 3.3 requires the minimum; a key above the maximum takes more than 10 ms to sign with. */
const RSA_BITS = { least: 2048, most: 4096 } as const;
/** At least as many bits as the hash has (RFC 7518 section 3.2). */
const HMAC_KEY = /^(?:[0-9a-f]{2}){32,128}$/i;

/**
 * Prepares the signing key among the entered values for storage: one line of base64 with unencrypted PKCS #8, or hex
 * digits for HS256. Other values from the provider's key file are added to the entered ones. Values of other kinds are
 * returned unchanged. Pure.
 */
export function unpackKey(given: GivenValues, provider: Provider): GivenValues | GivenProblem {
  const assertion = provider.oauth2?.assertion;
  const text = given.secrets.get(KEY_VALUES.key) ?? "";
  if (assertion === undefined || text === "") return given;
  if (text.length > MAX_SECRET_LENGTH) return keyProblem(`must be at most ${MAX_SECRET_LENGTH} characters`);
  const isFile = text.trimStart().startsWith("{");
  const read = isFile ? withKeyFile(given, text, provider) : given;
  const {
    [KEY_VALUES.passphrase]: passphrase = "",
    [KEY_VALUES.key]: written = "",
    ...others
  } = Object.fromEntries(read.secrets);
  if (isFile && written === text) return keyProblem("is JSON, but not a key file of this provider");
  const key = storedKeyFrom(written, passphrase, assertion, provider);
  return typeof key === "string"
    ? { open: read.open, secrets: new Map(Object.entries({ ...others, [KEY_VALUES.key]: key })) }
    : key;
}

/** Whether a text by itself is the signing key: anything except JSON with a member that names the key. */
export function isBareKey(text: string, { kind }: Pick<Provider, "kind">): boolean {
  return kind === "jwt_bearer" && toldMembersFrom(text)(KEY_VALUES.key) === "";
}

function keyProblem(problem: string, parameter: string = KEY_VALUES.key): GivenProblem {
  return { parameter, problem, isSecret: true };
}

function withKeyFile({ open, secrets }: GivenValues, file: string, { connectionValues }: Provider): GivenValues {
  const told = toldMembersFrom(file);
  const read = { open: new Map(open), secrets: new Map(secrets) };
  for (const { name, isSecret, keyFileMember } of connectionValues) {
    const to = isSecret ? read.secrets : read.open;
    const text = keyFileMember === undefined ? "" : told(keyFileMember);
    if (text !== "" && (name === KEY_VALUES.key || !to.get(name))) to.set(name, text);
  }
  return read;
}

function storedKeyFrom(
  written: string,
  passphrase: string,
  { algorithm }: Assertion,
  provider: Provider,
): string | GivenProblem {
  if (algorithm === "HS256")
    return HMAC_KEY.test(written.trim())
      ? written.trim()
      : keyProblem("must be an even number of hexadecimal digits, 64 to 256, as the provider shows it");
  // The key may be copied out of JSON, with `\n` still escaped.
  const [, label = "", base64 = STORED.exec(written)?.[0]] = PEM.exec(written.replace(/\\[rn]/g, "\n")) ?? [];
  if (base64 === undefined) return keyProblem("must be a private key in PEM, from -----BEGIN to -----END");
  const der = Buffer.from(base64, "base64");
  if (der.length > MAX_KEY_BYTES) return keyProblem(`must be at most ${MAX_KEY_BYTES} bytes`);
  const isEncrypted = label.startsWith("ENCRYPTED");
  const locked = isEncrypted ? problemOfLock(der, passphrase, provider) : undefined;
  if (locked !== undefined) return locked;
  const type = label.startsWith("RSA") ? "pkcs1" : label.startsWith("EC ") ? "sec1" : "pkcs8";
  const [head, known] = type === "pkcs8" && !isEncrypted ? (PKCS8.exec(der.toString("hex")) ?? []) : [label, label];
  if (head === undefined) return keyProblem(UNREADABLE);
  if (known === undefined) return keyProblem(wantedFor(algorithm));
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: der, format: "der", type, ...(isEncrypted && { passphrase }) });
  } catch {
    // OpenSSL's own message may reveal what is in the key.
    return isEncrypted ? keyProblem("does not open the private key", KEY_VALUES.passphrase) : keyProblem(UNREADABLE);
  }
  const problem = problemOfKey(key, algorithm);
  if (problem !== undefined) return keyProblem(problem);
  return key.export({ format: "der", type: "pkcs8" }).toString("base64");
}

/** The key itself says how much work opening it takes, so that is checked before it is opened. */
function problemOfLock(der: Buffer, passphrase: string, { connectionValues }: Provider): GivenProblem | undefined {
  const hint = "decrypt it first, with openssl pkcs8 -in key.pem -out plain.pem";
  if (!connectionValues.some(({ name }) => name === KEY_VALUES.passphrase)) return keyProblem(`is encrypted: ${hint}`);
  if (passphrase === "") return keyProblem("is missing: the private key is encrypted", KEY_VALUES.passphrase);
  if (passphrase.length > MAX_SECRET_LENGTH)
    return keyProblem(`must be at most ${MAX_SECRET_LENGTH} characters`, KEY_VALUES.passphrase);
  return roundsOf(der) <= MAX_ROUNDS
    ? undefined
    : keyProblem(`is encrypted in a way that the relay does not support: ${hint}`);
}

/** PBKDF2 iterations of an encrypted key; infinite when it names another algorithm. */
function roundsOf(der: Buffer): number {
  const text = der.toString("hex");
  const head = PBKDF2.exec(text);
  if (head === null) return Number.POSITIVE_INFINITY;
  const rest = text.slice(head[0].length + 2 * Number.parseInt(head[1] ?? "", 16));
  const [, length = "", digits = ""] = /^02(0[1-4])(.{2,8})/.exec(rest) ?? [];
  return length === "" ? Number.POSITIVE_INFINITY : Number.parseInt(digits.slice(0, 2 * Number(length)), 16);
}

const UNREADABLE = "cannot be read: it is truncated, or is not a private key";

function wantedFor(algorithm: Assertion["algorithm"]): string {
  if (!algorithm.startsWith("ES")) return `must be an RSA key for ${algorithm}`;
  return `must be an elliptic curve key on ${algorithm === "ES256" ? "P-256" : "P-384"} for ${algorithm}`;
}

function problemOfKey({ asymmetricKeyType: type, asymmetricKeyDetails }: KeyObject, algorithm: Assertion["algorithm"]) {
  const { modulusLength = 0, namedCurve } = asymmetricKeyDetails ?? {};
  if (algorithm.startsWith("ES")) {
    const curve = algorithm === "ES256" ? "prime256v1" : "secp384r1";
    return type === "ec" && namedCurve === curve ? undefined : wantedFor(algorithm);
  }
  if (type !== "rsa") return wantedFor(algorithm);
  const { least, most } = RSA_BITS;
  return modulusLength >= least && modulusLength <= most ? undefined : `must have ${least} to ${most} bits`;
}
