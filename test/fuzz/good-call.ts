import { once } from "node:events";
import http2 from "node:http2";
import { Client } from "undici";
import { mustHold } from "./campaign.js";
import type { RelayPlace } from "./relay-process.js";

/** A call over the JSON route with HTTP/1.1 and one over Connect with HTTP/2, each on a connection of its own. */
export async function makeGoodCalls(place: RelayPlace): Promise<void> {
  for (const [name, call] of [
    ["REST", callRest],
    ["Connect", callConnect],
  ] as const) {
    const text = await call(place);
    const isGood = /^\{"rows":\[\{"pincStatus":"success","statusCode":200,/.test(text) && text.includes('"login"');
    mustHold(isGood, `a good call over ${name} failed: ${text.slice(0, 200)}`);
  }
}

async function callRest({ url, origin, publicKey }: RelayPlace): Promise<string> {
  const client = new Client(url);
  try {
    const path = `/oauth/method/sandbox/call?user_id=user&public_key=${publicKey}`;
    const body = JSON.stringify({ url: `${origin}/me`, method: "GET" });
    return await (await client.request({ path, method: "POST", body })).body.text();
  } finally {
    await client.close();
  }
}

async function callConnect({ url, origin, publicKey }: RelayPlace): Promise<string> {
  const session = http2.connect(url);
  try {
    const call = { url: `${origin}/me`, method: "GET" };
    const path = "/relay.v1.RelayService/Call";
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
    stream.end(JSON.stringify({ providerName: "sandbox", userId: "user", publicKey, call }));
    let text = "";
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    await once(stream, "close");
    return text;
  } finally {
    session.close();
  }
}
