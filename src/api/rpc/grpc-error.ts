import { Code } from "@connectrpc/connect";
import { textFromDecodeFault } from "./decode-fault.js";
import { changeLastEnvelope, withChanges } from "./response-body.js";

/** https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md: the envelope holds the trailers. */
const TRAILERS_FLAG = 0x80;

const INVALID_ARGUMENT = String(Code.InvalidArgument);

/** An answer over gRPC, whose trailers say no more than where a message that cannot be decoded is wrong. */
export function withGrpcError(body: AsyncIterable<Uint8Array>, trailer: Headers): AsyncIterable<Uint8Array> {
  // They are filled while the body is made.
  return withChanges(body, { end: () => void changeStatus(trailer) });
}

/** The same over gRPC-Web, where the trailers are the last envelope; only those that quote much are compressed. */
export function withGrpcWebError(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const chunk = changeLastEnvelope(TRAILERS_FLAG, (data) => {
    const trailer = data === undefined ? new Headers({ "grpc-status": INVALID_ARGUMENT }) : trailerFrom(data);
    return changeStatus(trailer) ? bytesFrom(trailer) : undefined;
  });
  return withChanges(body, { chunk });
}

/** Returns false for every other status: only ours have details, and they quote nothing. Changes it in place. */
function changeStatus(trailer: Headers): boolean {
  if (trailer.get("grpc-status") !== INVALID_ARGUMENT || trailer.has("grpc-status-details-bin")) return false;
  const text = decodeURIComponent(trailer.get("grpc-message") ?? "");
  trailer.set("grpc-message", encodeURIComponent(textFromDecodeFault(text)));
  return true;
}

function trailerFrom(data: Uint8Array): Headers {
  const lines = Buffer.from(data).toString().split("\r\n").filter(Boolean);
  return new Headers(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
}

function bytesFrom(trailer: Headers): Uint8Array {
  return Buffer.from([...trailer].map(([name, value]) => `${name}: ${value}\r\n`).join(""));
}
