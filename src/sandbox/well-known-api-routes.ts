import type { Answer } from "./answer.js";
import { jsonAnswer } from "./answer.js";
import { isJsonType, mediaType } from "./fields.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { getRoute } from "./resource.js";
import type { SandboxRequest } from "./sandbox-request.js";

/** Answers in the shape of three public APIs that clients of the relay call most. */
export const WELL_KNOWN_API_ROUTES: readonly ResourceRoute[] = [
  { path: "/chat.postMessage", methods: ["POST"], handle: answerChatPostMessage },
  getRoute("/youtube/v3/channels", answerYoutubeChannels),
  getRoute("/2/users/me", answerTwitterMe),
];

/** https://docs.slack.dev/reference/methods/chat.postMessage: failures come with status 200 and `ok: false`. */
function answerChatPostMessage({ received }: ResourceRequest): Answer {
  const { channel, text } = messageFromBody(received);
  if (channel === undefined) return jsonAnswer('{"ok":false,"error":"channel_not_found"}');
  if (text === undefined) return jsonAnswer('{"ok":false,"error":"no_text"}');
  const ts = "1503435956.000247";
  return jsonAnswer(JSON.stringify({ ok: true, channel, ts, message: { type: "message", text, ts } }));
}

function messageFromBody({ rawHeaders, body }: SandboxRequest): { channel: unknown; text: unknown } {
  const text = body.toString();
  if (!isJsonType(mediaType(rawHeaders))) {
    const form = new URLSearchParams(text);
    return { channel: form.get("channel") ?? undefined, text: form.get("text") ?? undefined };
  }
  const value = parseJson(text);
  return typeof value === "object" && value !== null
    ? { channel: Reflect.get(value, "channel"), text: Reflect.get(value, "text") }
    : { channel: undefined, text: undefined };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the API then sees a message without members, and answers so.
    return undefined;
  }
}

/** https://developers.google.com/youtube/v3/docs/channels/list */
function answerYoutubeChannels({ query, account }: ResourceRequest): Answer {
  if (!query.has("part")) {
    return jsonAnswer('{"error":{"code":400,"message":"Required parameter: part","status":"INVALID_ARGUMENT"}}', 400);
  }
  const items = query.get("mine") === "true" ? [{ kind: "youtube#channel", etag: "c1", id: `UC${account.id}` }] : [];
  const pageInfo = { totalResults: items.length, resultsPerPage: 5 };
  return jsonAnswer(JSON.stringify({ kind: "youtube#channelListResponse", etag: "l1", pageInfo, items }));
}

/** https://docs.x.com/x-api/users/user-lookup-me */
function answerTwitterMe({ account }: ResourceRequest): Answer {
  return jsonAnswer(JSON.stringify({ data: { id: account.id, name: account.name, username: account.login } }));
}
