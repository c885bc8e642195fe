import { randomBytes, timingSafeEqual } from "node:crypto";
import { readdir, readFile, rename, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PathHandler } from "../http/dispatch.js";
import { answerPlain, clientNetworkOf, type HttpRequest, type HttpResponse, jsonFields } from "../http/exchange.js";
import { isRefusedByStore } from "../model/errors.js";
import {
  type AdminToken,
  type Admit,
  adminTokenOf,
  bearerOf,
  createAttempts,
  createSession,
  hashAdminToken,
  MAX_WRONG_TOKENS,
  type Operator,
  signatureOf,
} from "./admit.js";
import { answerNotAdmitted } from "./rpc-handler.js";

/** Lifetime of a link: it is meant to be opened at once. */
const LINK_MS = 15 * 60_000;
const NAME = /^[0-9a-f]{64}\.sign-in(?:\.draft|\.taken)?$/;

/** Where links are stored, and whose tokens sign them. */
interface LinkPlace {
  /** A folder in which the relay may remove files: its spool folder. */
  readonly folder: string;
  readonly tokens: readonly AdminToken[];
}

/**
 * Creates a link that signs one browser in to the console as the first operator, once, within 15 minutes. It is stored
 * as a file that is named after the hash of the secret and signed with that operator's token, so write access to the
 * folder is not enough to forge one. Undefined when there is no operator. Rejects with the system's error when the file
 * cannot be written.
 *
 * @param adminUrl url of the administration port.
 * @param now milliseconds since the epoch.
 */
export async function createSignInLink(
  adminUrl: string,
  { folder, tokens }: LinkPlace,
  now: number,
): Promise<string | undefined> {
  const operator = tokens.find(isOperator);
  if (operator === undefined) return undefined;
  await removeEnded(folder, now);
  const secret = randomBytes(32).toString("base64url");
  const name = nameOf(secret);
  const endsAt = String(now + LINK_MS);
  const signature = signatureOf(operator, textOf(name, endsAt)).toString("base64url");
  // Never seen half written. The umask decides who can read it: the relay may run as another user.
  const draft = join(folder, `${name}.draft`);
  await writeFile(draft, `${endsAt} ${signature}\n`, { flag: "wx" });
  await rename(draft, join(folder, name));
  // In the fragment, so that no server, log or proxy sees it and no link preview uses it up.
  return `${adminUrl}/console/#sign-in=${secret}`;
}

function isOperator({ role }: AdminToken): boolean {
  return role === "operator";
}

function nameOf(secret: string): string {
  return `${hashAdminToken(secret).toString("hex")}.sign-in`;
}

function textOf(name: string, endsAt: string): string {
  return `relay sign-in link ${name} until ${endsAt}`;
}

async function removeEnded(folder: string, now: number): Promise<void> {
  for (const file of (await readdir(folder)).filter((each) => NAME.test(each)).map((name) => join(folder, name))) {
    // Another user's, under a strict umask, may not be read.
    const [endsAt] = await readLink(file).catch((error) => {
      if (!isNotPermitted(error)) throw error;
      return ["0"] as const;
    });
    // One that is not whole may just be being written by another command, or was left by one that was killed.
    const end = Number(endsAt) || LINK_MS + ((await stat(file).catch(nothingIfGone))?.mtimeMs ?? now);
    if (end <= now) await unlink(file).catch(nothingIfGone);
  }
}

async function readLink(file: string): Promise<readonly [endsAt: string, signature: Buffer]> {
  const text = await readFile(file, "utf8").catch(nothingIfGone);
  const [, endsAt = "0", signature = ""] = /^(\d{1,15}) ([\w-]{43})\n$/.exec(text ?? "") ?? [];
  return [endsAt, Buffer.from(signature, "base64url")];
}

/** EPERM is for another user's file in a folder with the sticky bit. */
function isNotPermitted({ code }: NodeJS.ErrnoException): boolean {
  return code === "EACCES" || code === "EPERM";
}

function nothingIfGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/**
 * Consumes a link: resolves to the operator that it signs in; undefined when it was used, has expired or never existed.
 * Rejects as `onSignIn` does, or when the file may not be read or renamed, and then the link can be used again.
 */
async function takeLink(
  { folder, tokens, onSignIn }: Pick<SignInOptions, "folder" | "tokens" | "onSignIn">,
  secret: string,
  now: number,
): Promise<AdminToken | undefined> {
  const name = nameOf(secret);
  const file = join(folder, name);
  const [endsAt, signature] = await readLink(file);
  // Of several concurrent requests, the one that renames the file wins.
  const taken = `${file}.taken`;
  const isMine = await rename(file, taken).then(() => true, nothingIfGone);
  if (isMine !== true) return undefined;
  const isOpen = now < Number(endsAt) && signature.length === 32;
  const isSigner = (each: AdminToken) =>
    isOperator(each) && timingSafeEqual(signature, signatureOf(each, textOf(name, endsAt)));
  const operator = isOpen ? tokens.find(isSigner) : undefined;
  try {
    if (operator !== undefined) await onSignIn(operator.name);
  } catch (error) {
    await rename(taken, file);
    throw error;
  }
  await unlink(taken);
  return operator;
}

/** Options of {@link createSignInHandler}. The tokens are those loaded at start. */
interface SignInOptions extends LinkPlace {
  readonly admit: Admit;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Called before an operator is signed in; a rejection prevents the sign-in. */
  readonly onSignIn: (name: string) => Promise<void>;
  /** Ends a session everywhere. */
  readonly onSignOut: (operator: Operator & Required<Pick<Operator, "session">>) => Promise<unknown>;
}

/**
 * `POST /console/sign-in` takes the secret of a link or an admin token, and answers with a session of its operator. The
 * secret is sent as a bearer token, which no page of another origin can send. Wrong ones are counted like wrong admin
 * tokens. `POST /console/sign-out` takes the session and ends it.
 */
export function createSignInHandler(options: SignInOptions): PathHandler {
  const wrong = createAttempts(MAX_WRONG_TOKENS, () => performance.now());
  const answers: Readonly<Record<string, (request: HttpRequest, response: HttpResponse) => Promise<void>>> = {
    "/console/sign-in": (request, response) => answerSignIn(options, wrong, request, response),
    "/console/sign-out": (request, response) => answerSignOut(options, request, response),
  };
  return (request, response, path) => {
    const answer = answers[path];
    if (answer === undefined) return undefined;
    if (request.method === "POST") return answer(request, response).catch((error) => answerFailed(response, error));
    answerPlain(response, 405, "Send a POST request.", { allow: "POST" });
    return Promise.resolve();
  };
}

const UNREADABLE =
  "The relay may not read or remove the file of this sign-in link, because another user created it. Run 'relay console' as the relay's user, or with 'umask 022'.";
const UNRECORDED =
  "The relay cannot write to its database, where it records signing in and out. Try again in a moment; curl with the admin token and the relay command still work.";

/** Answers 403 for a link that may not be read or removed, and 503 when the store refused; rethrows any other error. */
function answerFailed(response: HttpResponse, error: unknown): void {
  const isUnreadable = isNotPermitted(error as NodeJS.ErrnoException);
  if (!isUnreadable && !isRefusedByStore(error)) throw error;
  answerPlain(response, isUnreadable ? 403 : 503, isUnreadable ? UNREADABLE : UNRECORDED);
}

async function answerSignIn(
  options: SignInOptions,
  wrong: ReturnType<typeof createAttempts>,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  const client = clientNetworkOf(options.clientAddress(request));
  const waitSeconds = wrong.waitSeconds(client);
  if (waitSeconds > 0) {
    return answerPlain(response, 429, `Too many attempts. Try again in ${waitSeconds} s.`, {
      "retry-after": String(waitSeconds),
    });
  }
  const secret = bearerOf(request.headers);
  const operator = secret === undefined ? undefined : await signIn(options, secret);
  if (operator === undefined) {
    // A request without the header does not count: any web page can make an operator's browser send one.
    if (request.headers.authorization !== undefined) wrong.add(client);
    return answerPlain(
      response,
      403,
      "This sign-in link was already used or has expired. Create another with 'relay console'.",
    );
  }
  const body = JSON.stringify({ token: createSession(operator, Date.now()) });
  response.writeHead(200, jsonFields(body.length));
  response.end(body);
}

/** Undefined for a secret that signs nobody in. */
async function signIn(options: SignInOptions, secret: string): Promise<AdminToken | undefined> {
  const operator = adminTokenOf(options.tokens, secret);
  if (operator === undefined) return takeLink(options, secret, Date.now());
  await options.onSignIn(operator.name);
  return operator;
}

/** 204: the session has ended now. 401: it had ended before. Any other status: it may still be valid. */
async function answerSignOut({ admit, onSignOut }: SignInOptions, request: HttpRequest, response: HttpResponse) {
  const admission = await admit(request);
  if (!admission.isAdmitted) return answerNotAdmitted(request, response, admission);
  const { session, ...operator } = admission.operator;
  if (session === undefined) return answerPlain(response, 400, "Send a console session, not the admin token.");
  await onSignOut({ ...operator, session });
  response.writeHead(204, { "cache-control": "no-store" });
  response.end();
}
