import { readFileSync } from "node:fs";
import fc from "fast-check";
import { notationsOfIPv4, notationsOfIPv6, SPECIAL_IPV4, SPECIAL_IPV6 } from "./address-notations.js";

/** One url for one provider. */
export interface UrlInput {
  readonly providerName: string;
  readonly url: string;
  /** What the corpus says; undefined where the text alone has to tell. */
  readonly expect?: "accept" | "reject";
}

/** What urls are made of: the only places that are allowed, and those that must never be reached. */
export interface UrlPlaces {
  /** Origins by provider name. */
  readonly allowed: Readonly<Record<string, readonly string[]>>;
  /** `host:port` of servers that must not be contacted. */
  readonly forbidden: readonly string[];
}

/** Characters and strings on which parsers of urls differ. */
const PIECES = [
  ..."@\\/?#:.;&%*[]{}|^`\"<>' ~",
  ..."\t\n\r\0\u007f\u0085\u00a0\u00ad\u200b\u200d\u2028\ufeff\ufffd",
  ..."\uff20\uff0f\uff03\uff1a\uff1f\uff0e\u3002\uff61\u2024\u2044\u2215\u29f5\u212a\u0131\u017f\u00df\u0430\u0131",
  "\ud800",
  "\udc00",
  "\u{1d5ba}",
  "%00",
  "%0d%0a",
  "%09",
  "%2e",
  "%2f",
  "%40",
  "%5c",
  "%23",
  "%3a",
  "%zz",
  "%",
  "..",
  "//",
  "\\\\",
  "\r\nX-Injected: 1",
  " HTTP/1.1\r\nHost: evil.test\r\n\r\n",
  ":80",
  ":443",
  ":0443",
  ":0",
  ":65536",
  ":@",
  "user:pass@",
  "evil.test",
  ".evil.test",
  "@evil.test",
  "xn--",
  "[::1]",
  "{{access_token}}",
];

/** Hosts of another user at a provider with a template, for whom the token is not (threats U40). */
const OTHER_TENANTS: readonly UrlInput[] = ["other", "xacme", "acm", "acme.acme", "acme-"].map((tenant) => ({
  providerName: "tenant",
  url: `https://${tenant}.example.com/`,
  expect: "reject",
}));

/** Lines of test/corpus/urls.jsonl, for the provider that they are written for, and what it cannot have. */
export function readCorpus(): UrlInput[] {
  const text = readFileSync(new URL("../corpus/urls.jsonl", import.meta.url), "utf8");
  const lines = text.split("\n").filter((line) => line !== "");
  const corpus = lines.map((line) => ({ ...(JSON.parse(line) as UrlInput), providerName: "github" }));
  return [...corpus, ...OTHER_TENANTS];
}

/** Everything that can be listed: address notations, and each piece at each place of each allowed origin. */
export function listUrls(places: UrlPlaces): UrlInput[] {
  return [...corpusHere(places), ...addressUrls(places), ...mutatedOrigins(places)];
}

/** The corpus again, with servers that exist in place of its names. */
function corpusHere({ allowed, forbidden }: UrlPlaces): UrlInput[] {
  const [good = ""] = allowed["wire"] ?? [];
  const corpus = readCorpus().filter(({ providerName }) => providerName === "github");
  return corpus.flatMap(({ url }) => {
    const plain = url.replace(/^https/i, "http").replaceAll("evil.test", forbidden[0] ?? "");
    return [
      { providerName: "wire", url: plain.replaceAll("api.github.com", good.replace("http://", "")) },
      { providerName: "wire", url: plain.replaceAll("api.github.com", "localhost") },
    ];
  });
}

function addressUrls({ allowed, forbidden }: UrlPlaces): UrlInput[] {
  const ports = [...forbidden, ...(allowed["wire"] ?? [])].map((place) => place.slice(place.lastIndexOf(":")));
  const near = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "127.255.255.254"].flatMap(notationsOfIPv4);
  const far = [...SPECIAL_IPV4.flatMap(notationsOfIPv4), ...SPECIAL_IPV6.flatMap(notationsOfIPv6)];
  return [
    ...near.flatMap((host) => ports.map((port) => `http://${host}${port}/`)),
    ...["[::1]", "[::]", "localhost.", "LOCALHOST", "localhost.localdomain"].flatMap((host) =>
      ports.map((port) => `http://${host}${port}/`),
    ),
    ...far.map((host, at) => `${at % 2 === 0 ? "http" : "https"}://${host}${at % 3 === 0 ? ports[0] : ""}/latest/`),
  ].map((url) => ({ providerName: "wire", url }));
}

function mutatedOrigins({ allowed, forbidden }: UrlPlaces): UrlInput[] {
  return Object.entries(allowed).flatMap(([providerName, origins]) =>
    origins.flatMap((origin) => {
      const pieces = [...PIECES, ...forbidden, ...forbidden.map((place) => `@${place}`), ...origins];
      const urls = pieces.flatMap((piece) => insertions(`${origin}/a`, piece));
      return [...urls, ...namesLike(origin)].map((url) => ({ providerName, url }));
    }),
  );
}

/** At the start, in the scheme, around the slashes, in the host, behind it, behind the port, in the path. */
function insertions(url: string, piece: string): string[] {
  const host = url.indexOf("//") + 2;
  const path = url.indexOf("/", host);
  const hostEnd = url.lastIndexOf(":") > host ? url.lastIndexOf(":") : path;
  return [0, 2, host - 2, host - 1, host, host + 3, hostEnd, path, path + 1, url.length].map(
    (at) => url.slice(0, at) + piece + url.slice(at),
  );
}

function namesLike(origin: string): string[] {
  const [scheme = "", rest = ""] = origin.split("://");
  const [host = "", port] = rest.split(":");
  const suffix = port === undefined ? "" : `:${port}`;
  return [
    origin.toUpperCase(),
    ...[`x${host}`, `x.${host}`, `${host}x`, `${host}.x`, host.slice(1), `${host}.`, `.${host}`, `${host}..`, "x"].map(
      (name) => `${scheme}://${name}${suffix}/`,
    ),
    ...["http", "https", "ftp", "ws", "wss", "file", "blob:http", "view-source:https", "http+unix"].map(
      (other) => `${other}://${rest}/`,
    ),
    ...[":80", ":443", ":0443", ":", ":0", ":65536", ":99999", "::80", ":-1", ":+443", ":4 43"].map(
      (other) => `${scheme}://${host}${other}/`,
    ),
    ...["/../..", "/a/./b/../c", "/%2e%2e/x", "/..;/x", "/%252e%252e/", "/a//b", "?", "#", "/?a=b#@x", "?q='\"<>"].map(
      (tail) => origin + tail,
    ),
    `${scheme}://${"a".repeat(64)}.${host}${suffix}/`,
    `${scheme}://${host}${suffix}/${"x".repeat(8_200)}`,
    `${scheme}://${host}${suffix}/${"x".repeat(1_000_000)}`,
  ];
}

/** Urls that no list has. */
export function generatedUrls({ allowed, forbidden }: UrlPlaces): fc.Arbitrary<UrlInput> {
  const listed = Object.entries(allowed).flatMap(([providerName, origins]) =>
    origins.map((origin) => ({ providerName, origin })),
  );
  const piece = fc.constantFrom(...PIECES, ...forbidden, ...listed.map(({ origin }) => origin), "a", "/", "?", "=");
  const pieces = fc.array(piece, { maxLength: 6 }).map((list) => list.join(""));
  const segment = fc.string({ unit: fc.constantFrom(..."aZ09-_~!$&'()*+,;=:@%|.{} <>\"\u00e9\u20ac"), maxLength: 10 });
  const tail = fc
    .tuple(fc.array(segment, { maxLength: 4 }), fc.option(fc.array(segment, { maxLength: 4 })), fc.boolean())
    .map(
      ([path, query, hash]) => `/${path.join("/")}${query === null ? "" : `?${query.join("&")}`}${hash ? "#x" : ""}`,
    );
  return fc
    .constantFrom(...listed)
    .chain(({ providerName, origin }) =>
      fc
        .oneof(
          { weight: 3, arbitrary: tail.map((text) => origin + text) },
          { weight: 3, arbitrary: mutation(`${origin}/a/b?c=d#e`, piece) },
          { weight: 2, arbitrary: pieces.map((text) => origin + text) },
          { weight: 1, arbitrary: pieces.map((text) => `http://${text}`) },
          { weight: 1, arbitrary: fc.webUrl({ validSchemes: ["http", "https", "ftp"], withQueryParameters: true }) },
          { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
          { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }).map((text) => origin + text) },
          { weight: 1, arbitrary: fc.ipV6().map((address) => `http://[${address}]/`) },
        )
        .map((url) => ({ providerName, url })),
    );
}

/** One insertion, deletion or replacement. */
function mutation(url: string, piece: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(fc.nat(url.length), piece, fc.nat(3))
    .map(([at, text, cut]) => url.slice(0, at) + text + url.slice(at + cut));
}
