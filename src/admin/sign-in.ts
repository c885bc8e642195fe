import { randomBytes, timingSafeEqual } from "node:crypto";
import { readdir, readFile, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PathHandler } from "../http/dispatch.js";
import { answerPlain, clientNetworkOf, type HttpRequest, type HttpResponse } from "../http/exchange.js";
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

/** A link is opened on the spot. */
const LINK_MS = 15 * 60_000;
const NAME = /^[0-9a-f]{64}\.sign-in$/;

/** Where links are kept, and who may make them. */
interface LinkPlace {
  /** A folder in which the relay may remove files: that of its spool. */
  readonly folder: string;
  readonly tokens: readonly AdminToken[];
}

/**
 * Makes a link that signs one browser in to the console as the first operator, once, within 15 minutes. What is kept of it is
 * a file with the hash of the secret as its name, signed with that operator's token: whoever can only write in the folder makes
 * none. Undefined where there is no operator. Rejects with the system's error where no file can be made.
 *
 * @param adminUrl where operators are served.
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
  await writeFile(join(folder, name), `${endsAt} ${signature}\n`, { flag: "wx" });
  // Behind the `#`: no server, log or proxy sees it, and no program that looks at links in advance uses it up.
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
  for (const name of (await readdir(folder)).filter((each) => NAME.test(each))) {
    const [endsAt] = await readLink(join(folder, name));
    if (Number(endsAt) <= now) await unlink(join(folder, name)).catch(nothingIfGone);
  }
}

async function readLink(file: string): Promise<readonly [endsAt: string, signature: Buffer]> {
  const text = (await readFile(file, "utf8").catch(nothingIfGone)) ?? "";
  const [, endsAt = "0", signature = ""] = /^(\d{1,15}) ([\w-]{43})\n$/.exec(text) ?? [];
  return [endsAt, Buffer.from(signature, "base64url")];
}

function nothingIfGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/** Uses a link up: resolves to the operator whom it signs in; undefined when it was used, has ended, or never was. */
async function takeLink({ folder, tokens }: LinkPlace, secret: string, now: number): Promise<AdminToken | undefined> {
  const name = nameOf(secret);
  const file = join(folder, name);
  const [endsAt, signature] = await readLink(file);
  // Of several at once, whoever removes the file is the one.
  const isMine = await unlink(file).then(() => true, nothingIfGone);
  if (isMine !== true || now >= Number(endsAt) || signature.length !== 32) return undefined;
  return tokens.find((each) => isOperator(each) && timingSafeEqual(signature, signatureOf(each, textOf(name, endsAt))));
}

/** What signing in and out needs; the tokens as the relay loaded them at its start. */
interface SignInOptions extends LinkPlace {
  readonly admit: Admit;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Called before somebody is let in; when it rejects, nobody is. */
  readonly onSignIn: (name: string) => Promise<void>;
  /** Ends a session everywhere. */
  readonly onSignOut: (operator: Operator & Required<Pick<Operator, "session">>) => Promise<unknown>;
}

/**
 * `POST /console/sign-in` takes the secret of a link, or an admin token, as bearer token, which no page of another origin can
 * send, and answers with a session: of the operator who made the link, or of the token. Wrong ones are counted as wrong admin
 * tokens are. `POST /console/sign-out` takes the session, and ends it.
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

/** Throws what is a fault. */
function answerFailed(response: HttpResponse, error: unknown): void {
  if (!isRefusedByStore(error)) throw error;
  answerPlain(
    response,
    503,
    "The database cannot be written right now, and signing in or out is written down first. Try again in a moment; with the admin token, curl and the relay command work meanwhile.",
  );
}

async function answerSignIn(
  { clientAddress, onSignIn, ...place }: SignInOptions,
  wrong: ReturnType<typeof createAttempts>,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  const client = clientNetworkOf(clientAddress(request));
  const waitSeconds = wrong.waitSeconds(client);
  if (waitSeconds > 0) {
    return answerPlain(response, 429, `Too many tries. Wait ${waitSeconds} seconds.`, {
      "retry-after": String(waitSeconds),
    });
  }
  const secret = bearerOf(request.headers);
  const operator = secret === undefined ? undefined : await operatorOf(place, secret);
  if (operator === undefined) {
    // Any web page can make an operator's browser send a request without it.
    if (request.headers.authorization !== undefined) wrong.add(client);
    return answerPlain(
      response,
      403,
      "This sign-in link was used before or has ended. Make another with 'relay console'.",
    );
  }
  await onSignIn(operator.name);
  const body = JSON.stringify({ token: createSession(operator, Date.now()) });
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": String(body.length),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(body);
}

async function operatorOf(place: LinkPlace, secret: string): Promise<AdminToken | undefined> {
  return adminTokenOf(place.tokens, secret) ?? (await takeLink(place, secret, Date.now()));
}

/** With 204 the session has ended now, with 401 before; with anything else it may go on. */
async function answerSignOut({ admit, onSignOut }: SignInOptions, request: HttpRequest, response: HttpResponse) {
  const admission = await admit(request);
  if (!admission.isAdmitted) return answerNotAdmitted(request, response, admission);
  const { session, ...operator } = admission.operator;
  if (session === undefined) return answerPlain(response, 400, "Send a console session, not the admin token.");
  await onSignOut({ ...operator, session });
  response.writeHead(204, { "cache-control": "no-store" });
  response.end();
}
