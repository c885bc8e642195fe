import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/** A certificate and its key, both PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** What a test wants to be wrong, or right, about a certificate. */
export interface CertificateOptions {
  /** DNS names it is for. */
  readonly names?: readonly string[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

/** Makes certificates without openssl, since the tests run on a machine with nothing but Node.js (RFC 5280). */
export interface Authority {
  /** The authority's own certificate, PEM. */
  readonly ca: string;
  issue(options: CertificateOptions): Certificate;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const ECDSA_WITH_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
const COMMON_NAME = oid(0x55, 0x04, 0x03);
const SUBJECT_ALT_NAME = oid(0x55, 0x1d, 0x11);
const BASIC_CONSTRAINTS = oid(0x55, 0x1d, 0x13);

/** Creates an authority of this run. */
export function createAuthority(name: string): Authority {
  const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const isCa = extension(BASIC_CONSTRAINTS, sequence(tlv(0x01, Buffer.from([0xff]))));
  return {
    ca: certificate({
      issuer: name,
      subject: name,
      publicKey: own.publicKey,
      signer: own.privateKey,
      extensions: isCa,
    }),
    issue({ names = [], ...dates }) {
      const leaf = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const alternatives = sequence(...names.map((dnsName) => tlv(0x82, Buffer.from(dnsName, "latin1"))));
      const cert = certificate({
        issuer: name,
        subject: names[0] ?? "nobody",
        publicKey: leaf.publicKey,
        signer: own.privateKey,
        extensions: extension(SUBJECT_ALT_NAME, alternatives),
        ...dates,
      });
      return { cert, key: leaf.privateKey.export({ type: "pkcs8", format: "pem" }) as string };
    },
  };
}

function certificate(content: {
  issuer: string;
  subject: string;
  publicKey: KeyObject;
  signer: KeyObject;
  extensions: Buffer;
  notBefore?: Date;
  notAfter?: Date;
}): string {
  const notBefore = content.notBefore ?? new Date(Date.now() - DAY_MS);
  const notAfter = content.notAfter ?? new Date(Date.now() + DAY_MS);
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    distinguishedName(content.issuer),
    sequence(time(notBefore), time(notAfter)),
    distinguishedName(content.subject),
    content.publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(content.extensions)),
  );
  const signature = sign("sha256", body, content.signer);
  const der = sequence(body, ECDSA_WITH_SHA256, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

function extension(id: Buffer, value: Buffer): Buffer {
  return sequence(id, tlv(0x04, value));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(tlv(0x31, sequence(COMMON_NAME, tlv(0x0c, Buffer.from(commonName)))));
}

/** UTCTime: good until 2049. */
function time(date: Date): Buffer {
  const digits = date.toISOString().replaceAll(/[-:T]/g, "").slice(2, 14);
  return tlv(0x17, Buffer.from(`${digits}Z`));
}

function oid(...bytes: number[]): Buffer {
  return tlv(0x06, Buffer.from(bytes));
}

function sequence(...items: readonly Uint8Array[]): Buffer {
  return tlv(0x30, Buffer.concat(items));
}

function tlv(tag: number, value: Uint8Array): Buffer {
  const { length } = value;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), value]);
}
