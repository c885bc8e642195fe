import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { Call } from "../../call/call.js";
import type { ErrorOutcome } from "../../call/outcome.js";
import type { Relay, StreamPart } from "../../call/relay.js";
import type { HttpResponse } from "../../http/exchange.js";
import type { PathHandler } from "../../http/router.js";
import { type CallRouteOptions, createCallRoute } from "./call-route.js";
import { corsFieldsFor } from "./preflight.js";
import { type Exchange, readCall } from "./read-call.js";
import { fieldsFromHead, hasContent } from "./stream-fields.js";
import { answerRow } from "./stream-row.js";

/** What the raw route needs from the rest of the service. */
export interface StreamHandlerOptions extends CallRouteOptions {
  readonly relay: Relay;
}

/**
 * The raw route: the provider's own status, fields and body as they come. What fails before the head is an error row with
 * the HTTP status of its reason; what fails later is an answer cut short, which every client can tell from a whole one.
 */
export function createStreamHandler(options: StreamHandlerOptions): PathHandler {
  return createCallRoute(options, (exchange) => answerStream(options, exchange));
}

async function answerStream(options: StreamHandlerOptions, exchange: Exchange): Promise<void> {
  const { response, origin } = exchange;
  let call: Call;
  try {
    call = await readCall(options, exchange);
  } catch (error) {
    await answerRow(options, exchange, options.relay.refuse(origin, error));
    return;
  }
  call.memory.whenEvicted(() => cut(response));
  for await (const part of options.relay.stream(call)) {
    // Leaving the loop lets the provider's socket go.
    if (call.signal?.aborted === true || !(await answerPart(options, exchange, part))) break;
  }
  if (!response.writableEnded) response.end();
}

/** False when nothing more is to be sent. */
async function answerPart(options: StreamHandlerOptions, exchange: Exchange, part: StreamPart): Promise<boolean> {
  const { response } = exchange;
  switch (part.kind) {
    case "head":
      await writeHead(options, exchange, part.head);
      return true;
    case "chunk":
      return hasContent(response.statusCode) && writeChunk(response, part.bytes);
    case "failure":
      await fail(options, exchange, part.outcome);
      return false;
  }
}

async function writeHead(
  options: StreamHandlerOptions,
  { request, response, origin, queryText }: Exchange,
  head: (StreamPart & { kind: "head" })["head"],
): Promise<void> {
  const cors = await corsFieldsFor(options.allowedOrigins, options.route, request, queryText);
  if (response.destroyed) return;
  response.writeHead(head.statusCode, fieldsFromHead(head, origin.callId, cors));
  // Before the first chunk is here: an event stream may have none for a while. What flushes the head alone would write it
  // in UTF-8, and fields are bytes.
  if (response instanceof ServerResponse) response.write(NOTHING);
}

const NOTHING = Buffer.alloc(0);

/** Resolves when more may be written, or when the response is closed and nothing more can be. */
function writeChunk(response: HttpResponse, bytes: Buffer): true | Promise<true> {
  const isTaken = response instanceof ServerResponse ? response.write(bytes) : response.write(bytes);
  if (isTaken) return true;
  return new Promise((resolve) => {
    const settle = () => {
      response.off("drain", settle).off("close", settle);
      resolve(true);
    };
    response.on("drain", settle).on("close", settle);
  });
}

async function fail(options: StreamHandlerOptions, exchange: Exchange, outcome: ErrorOutcome): Promise<void> {
  if (exchange.response.headersSent) cut(exchange.response);
  else await answerRow(options, exchange, outcome);
}

/** Ends an answer so that it cannot be taken for a complete one. */
function cut(response: HttpResponse): void {
  if (!(response instanceof ServerResponse)) {
    response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    return;
  }
  // HTTP/1.0, as some proxies speak it, has no chunks: there the end of the connection is the end of the answer.
  if (response.req.httpVersionMinor === 0) response.socket?.resetAndDestroy();
  response.destroy();
}
