import { pipeline, Readable } from "node:stream";
import { brotliCompressSync, createGzip, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import type { Answer } from "./answer.js";
import { contentAnswer } from "./answer.js";
import { integerParameter } from "./parameters.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { getRoute } from "./resource.js";

/** JSON under a content coding (RFC 9110 section 8.4), whatever Accept-Encoding says. */
export function createCodingRoutes(): readonly ResourceRoute[] {
  return [
    codingRoute("/gzip", "gzip", gzipSync),
    codingRoute("/br", "br", brotliCompressSync),
    codingRoute("/deflate", "deflate", deflateSync),
    // What some servers send as deflate: without the zlib wrapper that RFC 9110 section 8.4.1.2 asks for.
    codingRoute("/deflate-raw", "deflate", deflateRawSync),
    getRoute("/gzip-bomb", answerGzipBomb),
  ];
}

function codingRoute(path: string, coding: string, encode: (content: Buffer) => Buffer): ResourceRoute {
  const json = `{"path":"${path}","id":9007199254740993,"text":"${"Grüße ".repeat(40)}"}`;
  const answer = contentAnswer("application/json", encode(Buffer.from(json)), 200, ["Content-Encoding", coding]);
  return getRoute(path, () => answer);
}

const MIB = 1024 * 1024;

function answerGzipBomb({ query }: ResourceRequest): Answer {
  const mib = integerParameter(query, "mib", { fallback: 100, min: 1, max: 4096 });
  return {
    statusCode: 200,
    fields: ["Content-Type", "application/json", "Content-Encoding", "gzip"],
    // Compressed as it is sent, off the event loop. A failure here means that the client left.
    body: () => pipeline(Readable.from(blankArray(mib)), createGzip(), () => {}),
  };
}

/** A valid JSON array of exactly `mib` MiB that holds nothing. */
function* blankArray(mib: number): Generator<Buffer> {
  const blanks = Buffer.alloc(MIB, " ");
  for (let sent = 0; sent < mib; sent++) {
    const first = sent === 0;
    const last = sent === mib - 1;
    yield first || last ? bracketed(blanks, first, last) : blanks;
  }
}

function bracketed(blanks: Buffer, first: boolean, last: boolean): Buffer {
  const chunk = Buffer.from(blanks);
  if (first) chunk.write("[", 0);
  if (last) chunk.write("]", chunk.length - 1);
  return chunk;
}
