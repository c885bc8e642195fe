import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";

/** The field that names a request; an answer has it, too. */
export const REQUEST_ID = "x-request-id";

/**
 * An HTTP/1 answer that carries the id of its request, whoever writes it. `setHeader()` would do the same, but sends
 * every `writeHead()` after it the slow way, which costs a call three times as much as the field itself.
 */
export class NamedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Undefined until the request is named. */
  requestId: string | undefined;

  override writeHead(statusCode: number, statusMessage?: string, fields?: Fields): this;
  override writeHead(statusCode: number, fields?: Fields): this;
  override writeHead(statusCode: number, first?: string | Fields, second?: Fields): this {
    const fields = (typeof first === "string" ? second : first) ?? {};
    if (this.requestId === undefined) return super.writeHead(statusCode, fields);
    if (Array.isArray(fields)) this.setHeader(REQUEST_ID, this.requestId);
    // Into the caller's object, which nobody uses again: a copy costs as much as all the rest.
    else fields[REQUEST_ID] = this.requestId;
    return super.writeHead(statusCode, fields);
  }
}

type Fields = OutgoingHttpHeaders | OutgoingHttpHeader[];
