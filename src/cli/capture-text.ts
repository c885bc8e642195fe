import type { CaptureContent, CapturedBody, HeaderPairs } from "../records/capture-content.js";
import { printable } from "./terminal-text.js";

/** What was captured of a call, for a person: like the two messages themselves. */
export function textFromCapture({ request, response, message }: CaptureContent): string {
  const sent = request.isSent ? "Sent to the provider:" : "Described by the caller, and not sent:";
  const lines = [sent, ...messageLines(`${request.method} ${request.url}`, request.headers, request.body)];
  if (response !== undefined) {
    lines.push("", "Answered by the provider:");
    lines.push(...messageLines(String(response.statusCode), response.headers, response.body));
  }
  if (message !== undefined) lines.push("", `The caller was told: ${printable(message)}`);
  return lines.join("\n");
}

function messageLines(first: string, headers: HeaderPairs, body: CapturedBody | undefined): string[] {
  const fields = headers.map(([name, value]) => printable(`${name}: ${value}`));
  return [printable(first), ...fields, ...(body === undefined ? [] : ["", ...bodyLines(body)])];
}

function bodyLines({ bytes, text, isCut }: CapturedBody): string[] {
  if (text === undefined) return [`(${bytes} bytes that are no text)`];
  const lines = text.split(/\r?\n/).map(printable);
  return isCut ? [...lines, `(the beginning of ${bytes} bytes)`] : lines;
}
