import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { withEndStreamError, withUnaryError } from "./connect-error.js";
import { withGrpcError, withGrpcWebError } from "./grpc-error.js";

/**
 * The answer of connect over any of its protocols, but for what it quotes of a message that cannot be decoded, which may
 * be a secret in the wrong place (threats J14).
 */
export async function withDecodeError(universal: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { header, body, trailer } = universal;
  const type = header?.get("content-type") ?? "";
  if (body === undefined || !/^application\/(?:grpc|connect\+)/.test(type)) return withUnaryError(universal);
  if (type.startsWith("application/connect+")) return { ...universal, body: withEndStreamError(body) };
  if (type.startsWith("application/grpc-web")) return { ...universal, body: withGrpcWebError(body) };
  return trailer === undefined ? universal : { ...universal, body: withGrpcError(body, trailer) };
}
