import fastifyHttpProxy from "@fastify/http-proxy";
import Fastify from "fastify";
import { announce } from "./serve.js";

/** `@fastify/http-proxy` that puts a token into each request. */
const app = Fastify({ keepAliveTimeout: 60_000 });
await app.register(fastifyHttpProxy, {
  upstream: process.env["PROVIDER"] ?? "",
  undici: { connections: 200, pipelining: 1 },
  replyOptions: {
    rewriteRequestHeaders: (_request, headers) => ({
      ...headers,
      authorization: "Bearer bench-token-bench-token-bench-token",
    }),
  },
});
await app.listen({ port: 0, host: "127.0.0.1" });
announce(app.server.address());
