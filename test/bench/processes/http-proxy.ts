import { Agent, createServer } from "node:http";
import { createProxyServer } from "http-proxy-3";
import { announce } from "./announce.js";

/** `http-proxy-3` that puts a token into each request. */
const proxy = createProxyServer({
  target: process.env["PROVIDER"] ?? "",
  agent: new Agent({ keepAlive: true, maxSockets: 200 }),
  headers: { authorization: "Bearer bench-token-bench-token-bench-token" },
});
const server = createServer((request, response) => void proxy.web(request, response));
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => announce(server.address()));
