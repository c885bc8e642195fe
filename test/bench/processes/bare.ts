import type { IncomingMessage } from "node:http";
import { Agent } from "undici";
import { serve } from "./serve.js";

/**
 * The bare relay: node:http in, undici's request out, nothing else. It takes the same request as the relay and sends
 * the same one to the provider, so that the difference is the relay's own work.
 */
const provider = process.env["PROVIDER"] ?? "";
const agent = new Agent({ connections: 200, pipelining: 1 });
const authorization = "Bearer bench-token-bench-token-bench-token";

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("error", reject);
  });
}

serve(async (request, response) => {
  await bodyOf(request);
  const answer = await agent.request({
    origin: provider,
    path: request.url ?? "",
    method: "GET",
    headers: { authorization, accept: "*/*" },
  });
  const body = await collect(answer.body);
  response.writeHead(answer.statusCode, {
    "content-type": answer.headers["content-type"],
    "content-length": body.length,
  });
  response.end(body);
});
