import { type CallRequest, RelayService } from "../../../gen/relay/v1/relay_pb.js";
import type { Budget } from "../../call/budget.js";
import { isGone } from "../../call/outcome.js";
import type { LargePart } from "../../call/relay.js";
import type { ListsOrigin } from "../../http/cors.js";
import type { PathHandler } from "../../http/dispatch.js";
import { clientNetworkOf, type HttpRequest, type HttpResponse, watchCaller } from "../../http/exchange.js";
import { type Bytes, LARGE_BYTES } from "../../lib/chunks.js";
import type { Turns, WorkLimits } from "../../lib/turns.js";
import { RelayError } from "../../model/errors.js";
import { allowPage, type RpcHandler } from "../rpc/adapter.js";
import {
  type CallContext,
  deadlineOf,
  originOf,
  performCall,
  type RelayServiceOptions,
  requestContextOf,
} from "../rpc/relay-service.js";
import { decideRowData, type RowData } from "../rpc/row.js";
import { answerRow, decideHead, endTimeout, type FastHead, isPrefixed, largeValueOf } from "./answer.js";
import { decodeRequest, requestFromLargeJson } from "./decode.js";
import { type Reading, readMessage } from "./read-message.js";

/** What the fast path needs from the rest of the service. */
export interface FastPathOptions extends RelayServiceOptions {
  readonly budget: Budget;
  readonly clientAddress: (request: HttpRequest) => string;
  readonly listsOrigin: ListsOrigin;
  /** Largest request message. */
  readonly maxRequestBytes: number;
  /** Answers every request that the fast path does not handle. */
  readonly otherwise: RpcHandler;
  /** For messages and rows too large to be processed in one go. */
  readonly turns: Turns;
}

const PATH = `/${RelayService.typeName}/${RelayService.method.call.name}`;

/**
 * A fast path for plain calls of relay.v1.RelayService/Call, in front of connect-node.
 *
 * Why it exists: connect-node serves every protocol and every kind of method with the same async generators, abort
 * controllers, timers and copies of header lists, which costs a call four times as much as the rest of the relay; and
 * protobuf-es encodes a row by reflection. Nearly all calls need none of that: one message in, one message out, nothing
 * compressed. Those are read, performed and answered here, as connect-node would answer them. The decoding, the checks
 * and the call itself are shared with it (api/rpc/relay-service.ts).
 *
 * It judges a request by its head. Anything it does not know is passed to connect-node, and so is a body that turns out
 * not to be one plain message, with what was read of it so far. So all protocol errors come from connect-node. Three
 * answers differ: the fast path never compresses, which no client may count on; a call that ends with its caller's own
 * timeout says that the deadline passed, not that its caller left; and large JSON with more members than a call may
 * have is refused as a call, whatever these members are.
 */
export function createFastPath(options: FastPathOptions): PathHandler {
  return (request, response, path) => {
    const head = path === PATH ? decideHead(request, options.maxRequestBytes) : undefined;
    if (head === undefined) return options.otherwise(request, response, path);
    return answerCall(options, head, request, response);
  };
}

async function answerCall(
  options: FastPathOptions,
  head: FastHead,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  const { form } = head;
  const startedAt = performance.now();
  const address = options.clientAddress(request);
  const memory = options.budget.open(clientNetworkOf(address));
  const signal = watchCaller(response, memory);
  if (request.headers.origin !== undefined) await allowPage(options, request, response);
  const reading = await readMessage(request, isPrefixed(form), options.maxRequestBytes, memory, signal);
  if (reading === undefined) {
    if (!isGone(signal)) response.destroy();
    return;
  }
  const timesOutAt = startedAt + (head.timeoutMs ?? Number.POSITIVE_INFINITY);
  const isLate = performance.now() >= timesOutAt;
  const isReadable = reading.isPlain && !isLate;
  const isLarge = isReadable && form === "json" && reading.bytes.length > LARGE_BYTES;
  const limits = { signal, deadline: deadlineOf(options, { startedAt, timesOutAt }), memory };
  const large = isLarge ? await largeRequest(options, reading, limits) : undefined;
  if (isLarge && isGone(signal)) return;
  const message = large ?? (isReadable ? decodeRequest(form, reading.bytes) : undefined);
  if (message === undefined) {
    memory.release();
    if (isLate) endTimeout(request, form);
    return options.otherwise(request, response, PATH, reading.bytes);
  }
  let data: RowData | undefined;
  const { caller, identity } = requestContextOf(request, address, memory);
  const surface = isPrefixed(form) ? form : "connect";
  const context: CallContext = { identity, surface, caller, memory, signal, startedAt, timesOutAt };
  const { outcome, large: value } = await performed(options, message, context, ({ answer }) => {
    data = answer && decideRowData(answer.data);
    return largeValueOf(form, data);
  });
  if (!isGone(signal)) answerRow(response, form, { outcome, data: outcome.answer && data, value });
}

/**
 * Returns a refusal instead of throwing it, since it is answered like that of a call; undefined if the caller is gone.
 */
async function largeRequest({ turns }: FastPathOptions, { bytes }: Reading, limits: WorkLimits) {
  try {
    return await turns.take(requestFromLargeJson(bytes), limits);
  } catch (error) {
    if (error instanceof RelayError) return error;
    if (isGone(limits.signal)) return undefined;
    throw error;
  }
}

/** Performs the call, or refuses one that could not be read, of which no provider is known. */
function performed(
  options: FastPathOptions,
  message: CallRequest | RelayError,
  context: CallContext,
  largePart: LargePart<Bytes>,
) {
  if (!(message instanceof RelayError)) return performCall(options, message, context, largePart);
  return { outcome: options.relay.refuse(originOf({ providerName: "" }, context), message), large: undefined };
}
