import { formatError, RelayError } from "../model/errors.js";
import { holdsProtocolParameter } from "../oauth/signature.js";
import { headerMeant } from "../providers/credential.js";
import type { StreamedBody } from "../upstream/request.js";
import type { Call, CheckedCall } from "./call.js";
import { URLENCODED } from "./urlencoded.js";

/**
 * The longest form that is signed: the signature covers all of it (RFC 5849 section 3.4.1.3.1), so it must be here before
 * it is sent, and is sorted and encoded in one go. In octets.
 */
const MAX_SIGNED_FORM_BYTES = 64 * 1024;

/** What of a call its signature depends on. */
interface Signable {
  readonly call: Call;
  readonly checked: CheckedCall;
}

/** Whether a signature covers the body. */
function isForm({ headers }: CheckedCall): boolean {
  return headerOf(headers, "content-type").toLowerCase().includes(URLENCODED);
}

function headerOf(headers: CheckedCall["headers"], wanted: string): string {
  return headers.find(([name]) => headerMeant(name.toLowerCase()) === wanted)?.[1] ?? "";
}

/** The body as far as a signature covers it. */
export function signedFormOf(checked: CheckedCall): Uint8Array | undefined {
  return isForm(checked) ? checked.body : undefined;
}

/**
 * Refuses a call that no signature could be made for, or that brings parts of one. What is streamed is looked at when it is
 * here.
 *
 * Throws RelayError CALL_FORMAT_ERROR or REQUEST_TOO_LARGE.
 *
 * @param target path and query as they go out.
 */
export function requireSignable({ call, checked }: Signable, target: string): void {
  const mark = target.indexOf("?");
  if (mark !== -1 && holdsProtocolParameter(target.slice(mark + 1))) throw reserved("query");
  if (!isForm(checked)) return;
  if (!/^(?:identity)?$/i.test(headerOf(checked.headers, "content-encoding")))
    throw formatError("headers.content-encoding: a form that is signed cannot be compressed. Leave it out.");
  if ((call.description.passed?.body?.length ?? 0) > MAX_SIGNED_FORM_BYTES) throw tooLarge();
  if (checked.body !== undefined) requireForm(checked.body);
}

/**
 * The call with the form that it streams as a body of its own, so that it can be signed; any other call as it is. Rejects
 * with RelayError REQUEST_TOO_LARGE, CALL_FORMAT_ERROR, and as the body does.
 */
export async function withSignedForm<Allowed extends Signable>(allowed: Allowed): Promise<Allowed> {
  const { call, checked } = allowed;
  const body = call.description.passed?.body;
  if (body === undefined || !isForm(checked)) return allowed;
  const form = await wholeOf(body, call);
  requireForm(form);
  return { ...allowed, checked: { ...checked, body: form } };
}

async function wholeOf(body: StreamedBody, { deadline }: Call): Promise<Uint8Array> {
  const reader = body.open();
  if (reader instanceof Uint8Array) return reader;
  const late = () =>
    reader.destroy(new RelayError("PROVIDER_TIMEOUT", "The body did not come in time. Send it again."));
  const timer = setTimeout(late, Math.max(0, deadline - performance.now()));
  const pieces: Buffer[] = [];
  try {
    for await (const piece of reader) {
      if (body.taken > MAX_SIGNED_FORM_BYTES) throw tooLarge();
      pieces.push(piece);
    }
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(pieces);
}

function requireForm(form: Uint8Array): void {
  if (form.length > MAX_SIGNED_FORM_BYTES) throw tooLarge();
  if (holdsProtocolParameter(form)) throw reserved("body");
}

function tooLarge(): RelayError {
  return new RelayError(
    "REQUEST_TOO_LARGE",
    `This provider's calls are signed, and a form that is signed may have ${MAX_SIGNED_FORM_BYTES} bytes at most. Send JSON or multipart/form-data where the API takes it.`,
  );
}

function reserved(where: string): RelayError {
  return formatError(
    `The ${where} holds a parameter whose name begins with oauth_. Leave it out: the relay signs the call itself.`,
  );
}
