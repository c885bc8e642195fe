import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { CallRequestSchema, ResponseMode } from "../../gen/relay/v1/relay_pb.js";
import { signCallToken } from "../support/call-tokens.js";
import { PROVIDER_NAME, userIdOf } from "./bench-store.js";
import type { Point } from "./points.js";
import { pathOf } from "./processes/content.js";
import type { LoadOrder } from "./processes/load-order.js";
import type { Subject } from "./subject.js";

const RPC_PATH = "/relay.v1.RelayService/Call";

type Request = Pick<LoadOrder, "protocol" | "headers" | "expected"> & { readonly bytes: Buffer };

/** What the load process is asked for at one point of one subject. */
export function orderFor(
  point: Point,
  subject: Subject,
  providerOrigin: string,
  times: Pick<LoadOrder, "warmMs" | "ms">,
): LoadOrder {
  const requests = point.sizes.map((size) => requestFor(point, subject, providerOrigin, pathOf(point.content, size)));
  const [{ bytes, ...request }] = requests as [Request];
  // It stands in front of all that differs.
  const placeholder = bytes.indexOf(userIdOf(0, point.user));
  return {
    ...request,
    port: subject.port,
    isEncrypted: subject.name === "direct" ? point.provider !== "http" : point.callers === "tls",
    requests: requests.map((each) => each.bytes.toString("base64")),
    userAt: placeholder === -1 || subject.users === 0 || point.caller !== "all-users" ? undefined : placeholder + 1,
    users: subject.users,
    endedUsers: subject.endedUsers,
    callers: point.concurrency,
    pauseMs: point.pauseMs,
    ...times,
  };
}

function requestFor(point: Point, subject: Subject, providerOrigin: string, path: string): Request {
  const expected = point.user === "stranger" ? "INVALID_OAUTHID" : "success";
  if (point.wire === "json" || point.wire === "via") {
    if (subject.name === "direct" || subject.name === "fastify" || subject.name === "http-proxy") return plain(path);
    const call = Buffer.from(JSON.stringify({ url: providerOrigin + path, method: "GET" }));
    if (subject.name === "bare") return { ...posted(path, "application/json", call), expected: "" };
    if (point.wire === "via") {
      const { host } = new URL(providerOrigin);
      return plain(`/via/${PROVIDER_NAME}/${host}${path}`, callTokenOf(subject, path));
    }
    if (point.caller === "call-token") {
      const authorization = `authorization: Bearer ${callTokenOf(subject, path)}\r\n`;
      return { ...posted(`/oauth/method/${PROVIDER_NAME}/call`, "application/json", call, authorization), expected };
    }
    const query = `user_id=${userIdOf(0, point.user)}&public_key=${subject.publicKey}`;
    return { ...posted(`/oauth/method/${PROVIDER_NAME}/call?${query}`, "application/json", call), expected };
  }
  const message = create(CallRequestSchema, {
    providerName: PROVIDER_NAME,
    userId: userIdOf(0, point.user),
    publicKey: subject.publicKey,
    call: { url: providerOrigin + path, method: "GET" },
    responseMode: point.mode === "body" ? ResponseMode.BODY : ResponseMode.DATA,
  });
  if (point.wire === "connect-json") {
    const text = Buffer.from(toJsonString(CallRequestSchema, message));
    return { ...posted(RPC_PATH, "application/json", text), expected };
  }
  const binary = Buffer.from(toBinary(CallRequestSchema, message));
  return point.wire === "grpc" ? grpc(binary) : { ...posted(RPC_PATH, "application/proto", binary), expected };
}

/** A proxy sends on what it is asked, so it is asked as the provider is. */
function plain(path: string, token = "bench-token"): Request {
  const head = `GET ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${token}\r\n\r\n`;
  return { protocol: "http1", headers: {}, expected: "", bytes: Buffer.from(head) };
}

/** With rules as an agent's has. */
function callTokenOf(subject: Subject, path: string): string {
  const iat = Math.floor(Date.now() / 1000);
  const rules = [{ methods: ["POST"] }, { methods: ["GET"], paths: ["/repos/acme/**", path.replace(/\?.*/, "")] }];
  const claims = { sub: userIdOf(0, "connected"), iat, exp: iat + 86_400, providers: [PROVIDER_NAME], rules };
  return signCallToken(subject, { claims });
}

function posted(target: string, contentType: string, body: Buffer, more = ""): Omit<Request, "expected"> {
  const head = `POST ${target} HTTP/1.1\r\nhost: bench\r\ncontent-type: ${contentType}\r\n${more}content-length: ${body.length}\r\n\r\n`;
  return { protocol: "http1", headers: {}, bytes: Buffer.concat([Buffer.from(head), body]) };
}

/** One message with its prefix, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. */
function grpc(message: Buffer): Request {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const headers = { ":path": RPC_PATH, "content-type": "application/grpc", te: "trailers" };
  return { protocol: "http2", headers, expected: "success", bytes: Buffer.concat([prefix, message]) };
}
