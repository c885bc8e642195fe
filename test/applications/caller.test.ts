import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  type Application,
  type CallerAuth,
  createPrivateKey,
  hashPrivateKey,
} from "../../src/applications/application.js";
import { type CallerProof, decideCaller, type ShownKey } from "../../src/applications/caller.js";

const KEY = createPrivateKey();
const OTHER_KEY = createPrivateKey();
const PUBLIC_KEY = "public.key";
const USER = "user É\0";
const sign = (key: string, userId = USER) => createHmac("sha256", key).update(userId).digest("hex");

const shown = (privateKey: string, place: ShownKey["place"] = "private_key", publicKey?: string): ShownKey => ({
  place,
  publicKey,
  privateKey,
});

/** A proof with at most one private key, as most requests have. */
type Proof = Partial<Omit<CallerProof, "privateKeys">> & { readonly privateKey?: string };

interface Case {
  readonly auth?: CallerAuth;
  readonly origins?: readonly string[];
  readonly addresses?: readonly string[];
  readonly proof?: Proof;
  readonly keys?: CallerProof["privateKeys"];
  readonly hash?: () => Buffer;
}

/** The rule that refused, or `allow`; and the message. */
function decide({
  auth = "PUBLIC_KEY",
  origins = [],
  addresses = [],
  proof: given = {},
  keys,
  hash,
}: Case): [string, string] {
  const { privateKey, ...others } = given;
  const privateKeys = keys ?? (privateKey === undefined ? [] : [shown(privateKey)]);
  const application: Application = {
    ...({} as Application),
    publicKey: PUBLIC_KEY,
    privateKeyHash: new Uint8Array(),
    maxCallTokenSeconds: 0,
    callerAuth: auth,
    allowedOrigins: origins,
    allowedAddresses: addresses,
  };
  const proof = {
    callToken: undefined,
    userSignature: undefined,
    origin: undefined,
    address: "203.0.113.9",
    ...others,
  };
  const decision = decideCaller(
    { openPrivateKeyHash: hash ?? (() => hashPrivateKey(KEY)), now: Date.now },
    application,
    { userId: USER, proof: { privateKeys, ...proof } },
  );
  return decision.result === "allow" ? ["allow", ""] : [decision.rule, decision.message];
}

const LEVELS: readonly CallerAuth[] = ["PUBLIC_KEY", "SIGNED_USER", "PRIVATE_KEY"];

describe("decideCaller() with wrong proof", () => {
  const mac = sign(KEY);
  const wrongKeys = [
    OTHER_KEY,
    KEY.slice(0, -1),
    `${KEY}x`,
    `${KEY} `,
    ` ${KEY}`,
    `${KEY.slice(0, -1)}${KEY.endsWith("A") ? "B" : "A"}`,
    KEY.toUpperCase(),
    "x",
    hashPrivateKey(KEY).toString("hex"),
    "x".repeat(100_000),
  ];
  const wrongSignatures = [
    mac.toUpperCase(),
    mac.slice(0, -1),
    `${mac}0`,
    ` ${mac}`,
    `${mac}\n`,
    mac.slice(0, 32),
    `${mac.slice(0, -1)}${mac.endsWith("0") ? "1" : "0"}`,
    "g".repeat(64),
    "0".repeat(64),
    Buffer.from(mac, "hex").toString("base64"),
    sign(KEY, "other"),
    sign(KEY, ""),
    sign(KEY, "user É"),
    sign(OTHER_KEY),
    KEY,
  ];

  it.each(LEVELS)("refuses a wrong private key at level %s", (auth) => {
    for (const privateKey of wrongKeys) {
      expect(decide({ auth, proof: { privateKey } })[0]).toBe("private-key");
      expect(decide({ auth, proof: { privateKey, userSignature: mac } })[0]).toBe("private-key");
    }
  });

  it.each(LEVELS)("refuses a wrong signature at level %s", (auth) => {
    for (const userSignature of wrongSignatures) {
      const [rule, message] = decide({ auth, proof: { userSignature } });
      expect([rule, message]).toEqual(["user-signature", expect.stringContaining("64 lower-case hex digits")]);
      expect(decide({ auth, proof: { userSignature, privateKey: KEY } })[0]).toBe("user-signature");
    }
  });

  it.each(LEVELS)(
    "refuses a wrong key beside right ones at level %s, wherever it stands, and names the place",
    (auth) => {
      for (const place of ["private_key", "Authorization", "x-partner-key"] as const) {
        for (const keys of [
          [shown(KEY), shown(OTHER_KEY, place)],
          [shown(OTHER_KEY, place), shown(KEY)],
          [shown(KEY), shown(KEY, "Authorization"), shown(`${KEY} `, place), shown(KEY, "x-partner-key", PUBLIC_KEY)],
        ]) {
          expect(decide({ auth, keys })).toEqual(["private-key", expect.stringContaining(`in ${place} is not`)]);
        }
      }
    },
  );

  it.each(LEVELS)("refuses a right key that stands beside another application's public key at level %s", (auth) => {
    for (const publicKey of ["public", "public.key.", "PUBLIC.KEY", ""]) {
      const keys = [shown(KEY), shown(KEY, "x-partner-key", publicKey)];
      expect(decide({ auth, keys })).toEqual(["private-key", expect.stringContaining("must be public.private of")]);
    }
  });

  it("takes the same right key from every place at once", () => {
    const keys = [shown(KEY), shown(KEY, "Authorization"), shown(KEY, "x-partner-key", PUBLIC_KEY)];
    expect(decide({ auth: "PRIVATE_KEY", keys })[0]).toBe("allow");
  });

  it("never says what was right or what was sent", () => {
    for (const privateKey of wrongKeys.filter((key) => key.length > 8)) {
      const [, message] = decide({ proof: { privateKey } });
      for (const secret of [KEY, privateKey, hashPrivateKey(KEY).toString("hex")])
        expect(message).not.toContain(secret);
    }
    expect(decide({ proof: { userSignature: wrongSignatures[6] ?? "" } })[1]).not.toContain(mac);
  });
});

describe("decideCaller() by level", () => {
  it.each<[CallerAuth, Proof, string]>([
    ["PUBLIC_KEY", {}, "allow"],
    ["PUBLIC_KEY", { privateKey: "", userSignature: "" }, "allow"],
    ["PUBLIC_KEY", { userSignature: sign(KEY) }, "allow"],
    ["PUBLIC_KEY", { privateKey: KEY }, "allow"],
    ["SIGNED_USER", {}, "proof-missing"],
    ["SIGNED_USER", { privateKey: "", userSignature: "" }, "proof-missing"],
    ["SIGNED_USER", { userSignature: sign(KEY) }, "allow"],
    ["SIGNED_USER", { privateKey: KEY }, "allow"],
    ["SIGNED_USER", { privateKey: KEY, userSignature: sign(KEY) }, "allow"],
    ["PRIVATE_KEY", {}, "proof-missing"],
    ["PRIVATE_KEY", { privateKey: "" }, "proof-missing"],
    ["PRIVATE_KEY", { userSignature: sign(KEY) }, "proof-missing"],
    ["PRIVATE_KEY", { privateKey: KEY }, "allow"],
    ["PRIVATE_KEY", { privateKey: KEY, userSignature: sign(KEY) }, "allow"],
    ["SOMETHING_NEW" as CallerAuth, {}, "proof-missing"],
    ["SOMETHING_NEW" as CallerAuth, { userSignature: sign(KEY) }, "proof-missing"],
  ])("%s with %j", (auth, proof, expected) => expect(decide({ auth, proof })[0]).toBe(expected));

  it("says what to send", () => {
    expect(decide({ auth: "PRIVATE_KEY" })[1]).toBe(
      "This application requires its private key: send it as Authorization: Bearer, private_key in the query, or x-partner-key: public.private.",
    );
    expect(decide({ auth: "SIGNED_USER" })[1]).toContain("send user_signature");
  });

  it("opens the stored hash once at most, and not when nothing is shown or the place is refused", () => {
    const never = () => expect.unreachable();
    expect(decide({ hash: never })[0]).toBe("allow");
    expect(decide({ auth: "PRIVATE_KEY", hash: never })[0]).toBe("proof-missing");
    expect(decide({ hash: never, proof: { origin: "https://evil.example", privateKey: KEY } })[0]).toBe("origin");
    let opened = 0;
    const count = () => {
      opened += 1;
      return hashPrivateKey(KEY);
    };
    decide({ hash: count, proof: { privateKey: KEY, userSignature: sign(KEY) } });
    expect(opened).toBe(1);
  });
});

describe("decideCaller() by origin", () => {
  const origins = ["https://app.example.com", "http://localhost:3000"];
  it.each([
    "https://evil.example",
    "https://app.example.com.evil.example",
    "https://app.example.com:8443",
    "https://app.example.com/",
    "http://app.example.com",
    "https://APP.example.com",
    "https://sub.app.example.com",
    "null",
    "*",
    "",
  ])("refuses %j", (origin) => expect(decide({ origins, proof: { origin, privateKey: KEY } })[0]).toBe("origin"));

  it("refuses every origin when none is listed", () => {
    expect(decide({ proof: { origin: "https://app.example.com" } })[0]).toBe("origin");
  });

  it("takes a listed origin, and callers that are no browser", () => {
    for (const origin of [...origins, undefined]) expect(decide({ origins, proof: { origin } })[0]).toBe("allow");
  });
});

describe("decideCaller() by address", () => {
  const addresses = ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"];
  it.each([
    "192.0.3.1",
    "198.51.100.8",
    "2001:db9::1",
    "::ffff:192.0.3.1",
    "::192.0.2.1",
    "",
    "unknown",
    "192.0.2.1:80",
    "192.0.2.1/24",
    "192.0.2",
  ])("refuses %j", (address) => expect(decide({ addresses, proof: { address, privateKey: KEY } })[0]).toBe("address"));

  it.each(["192.0.2.1", "198.51.100.7", "2001:db8::1", "2001:DB8:0::1", "::ffff:192.0.2.1", "::ffff:c000:201"])(
    "takes %j",
    (address) => expect(decide({ addresses, proof: { address } })[0]).toBe("allow"),
  );

  it("takes any address when none is listed, even one that is not known", () => {
    expect(decide({ proof: { address: "" } })[0]).toBe("allow");
  });

  it("does not let a listed address stand in for proof", () => {
    expect(decide({ auth: "PRIVATE_KEY", addresses, proof: { address: "192.0.2.1" } })[0]).toBe("proof-missing");
  });
});
