import { type CallRequestText, type CallRow, type CallTarget, jsonBodyFrom, messageJsonFrom } from "./call-row.js";
import { callOverRest, callOverRpc, type RpcProtocol, restUrl, rpcUrl } from "./call-rpc.js";
import { writeJson, writeLine } from "./command.js";
import type { DemoRelay } from "./demo-relay.js";

interface DemoCall {
  readonly protocol: string;
  /** Where it goes, and the JSON that is sent or that stands for the message. */
  readonly where: string;
  readonly sent: string;
  readonly perform: () => Promise<CallRow>;
}

/** Makes one call over each protocol and prints what was sent and what came back. Resolves to how many failed. */
export async function makeDemoCalls(relay: DemoRelay, { json }: { readonly json: boolean }): Promise<number> {
  if (!json) writeLine(introduction(relay));
  let failed = 0;
  for (const call of demoCalls(relay)) {
    const { row, json: received } = await call.perform();
    if (row.pincStatus !== "success") failed++;
    if (json) writeJson({ protocol: call.protocol, sent: JSON.parse(call.sent), received: JSON.parse(received) });
    else writeLine(textFrom(call, received));
  }
  return failed;
}

function demoCalls(relay: DemoRelay): readonly DemoCall[] {
  const { relayUrl, sandboxOrigin } = relay;
  const target: CallTarget = { relayUrl, privateKey: undefined, responseMode: "data" };
  const profile = requestTo(relay, "GET", `${sandboxOrigin}/me`);
  const list = requestTo(relay, "GET", `${sandboxOrigin}/items?count=2`);
  const message = requestTo(relay, "POST", `${sandboxOrigin}/chat.postMessage`, '{"channel":"#general","text":"hi"}');
  const rest = {
    protocol: "REST",
    where: `POST ${restUrl(profile, target)}`,
    sent: jsonBodyFrom(profile),
    perform: () => callOverRest(profile, target),
  };
  return [rest, rpcCall("Connect", list, target, "connect"), rpcCall("gRPC", message, target, "grpc")];
}

function rpcCall(name: string, request: CallRequestText, target: CallTarget, protocol: RpcProtocol): DemoCall {
  return {
    protocol: name,
    where: rpcUrl(target.relayUrl),
    sent: messageJsonFrom(request),
    perform: () => callOverRpc(request, target, protocol),
  };
}

function requestTo(relay: DemoRelay, method: string, url: string, payload?: string): CallRequestText {
  const { providerName, publicKey, userId } = relay;
  return { providerName, publicKey, userId, method, url, payload, headers: {} };
}

function introduction({ relayUrl, adminUrl, sandboxOrigin, userId, providerName, publicKey }: DemoRelay): string {
  return `The sandbox provider is at ${sandboxOrigin}, the relay at ${relayUrl}.
Its console and its administration port are at ${adminUrl}.
User "${userId}" of the application ${publicKey} is connected to "${providerName}":
the relay holds the access token, sealed. No caller ever sees it.`;
}

function textFrom({ protocol, where, sent }: DemoCall, received: string): string {
  return `
--- ${protocol} ---
sent to ${where}
${indented(sent)}
received
${indented(`{"rows":[${received}]}`)}`;
}

function indented(json: string): string {
  return JSON.stringify(JSON.parse(json), undefined, 2).replace(/^/gm, "  ");
}
