import { formatError, RelayError } from "../model/errors.js";
import { holdsProtocolParameter } from "../oauth/signature.js";
import { findHeader } from "../providers/credential.js";
import type { StreamedBody } from "../upstream/request.js";
import type { Call, CheckedCall } from "./call.js";
import { URLENCODED } from "./urlencoded.js";

/**
 * The longest form that is signed, in bytes. The signature covers all of it (RFC 5849 section 3.4.1.3.1), so it must be
 * complete before it is sent, and is sorted and encoded in one step.
 */
const MAX_SIGNED_FORM_BYTES = 64 * 1024;

/** The parts of a call that its signature depends on. */
interface Signable {
  readonly call: Call;
  readonly checked: CheckedCall;
}

/** Whether a signature covers the body. */
function isForm({ headers }: CheckedCall): boolean {
  return headerOf(headers, "content-type").toLowerCase().includes(URLENCODED);
}

function headerOf(headers: CheckedCall["headers"], wanted: string): string {
  return findHeader(headers, wanted)?.[1] ?? "";
}

/** The body where the signature covers it; undefined for a body that is not a form. */
export function signedFormOf(checked: CheckedCall): Uint8Array | undefined {
  return isForm(checked) ? checked.body : undefined;
}

/**
 * Refuses a call that cannot be signed, or that contains signature parameters of its own. A streamed body is checked
 * once it is complete.
 *
 * Throws RelayError CALL_FORMAT_ERROR or REQUEST_TOO_LARGE.
 *
 * @param target path and query as they are sent.
 */
export function requireSignable({ call, checked }: Signable, target: string): void {
  const mark = target.indexOf("?");
  if (mark !== -1 && holdsProtocolParameter(target.slice(mark + 1))) throw reserved("query");
  if (!isForm(checked)) return;
  if (!/^(?:identity)?$/i.test(headerOf(checked.headers, "content-encoding")))
    throw formatError("headers.content-encoding: a signed form cannot be compressed. Leave it out.");
  if ((call.description.passed?.body?.length ?? 0) > MAX_SIGNED_FORM_BYTES) throw tooLarge();
  if (checked.body !== undefined) requireForm(checked.body);
}

/**
 * Reads a streamed form to its end, so that it can be signed, and returns the call with it; returns any other call
 * unchanged. Rejects with RelayError REQUEST_TOO_LARGE or CALL_FORMAT_ERROR, when the body fails, and with the reason of
 * the call's signal.
 */
export async function withSignedForm<Allowed extends Signable>(allowed: Allowed): Promise<Allowed> {
  const { call, checked } = allowed;
  const body = call.description.passed?.body;
  if (body === undefined || !isForm(checked)) return allowed;
  const form = await wholeOf(body, call);
  requireForm(form);
  return { ...allowed, checked: { ...checked, body: form } };
}

async function wholeOf(body: StreamedBody, { deadline, signal }: Call): Promise<Uint8Array> {
  if (signal?.aborted === true) throw signal.reason;
  const reader = body.open();
  if (reader instanceof Uint8Array) return reader;
  const late = () =>
    reader.destroy(new RelayError("PROVIDER_TIMEOUT", "The body did not arrive in time. Send it again."));
  const timer = setTimeout(late, Math.max(0, deadline - performance.now()));
  const ended = { handleEvent: () => void reader.destroy(signal?.reason as Error) };
  signal?.addEventListener("abort", ended);
  const pieces: Buffer[] = [];
  try {
    for await (const piece of reader) {
      if (body.taken > MAX_SIGNED_FORM_BYTES) throw tooLarge();
      pieces.push(piece);
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", ended);
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
    `This provider's calls are signed, and a signed form may have at most ${MAX_SIGNED_FORM_BYTES} bytes. Send JSON or multipart/form-data if the API accepts it.`,
  );
}

function reserved(where: string): RelayError {
  return formatError(
    `The ${where} contains a parameter whose name begins with oauth_. Leave it out: the relay signs the call itself.`,
  );
}
