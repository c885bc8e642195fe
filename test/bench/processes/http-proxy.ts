import { Agent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import { createProxyServer } from "http-proxy-3";
import { serve } from "./serve.js";

/** `http-proxy-3` that puts a token into each request. */
const target = process.env["PROVIDER"] ?? "";
const sockets = { keepAlive: true, maxSockets: 200 };
const proxy = createProxyServer({
  target,
  // TLS asks for the name of the certificate.
  changeOrigin: true,
  agent: target.startsWith("https:") ? new SecureAgent(sockets) : new Agent(sockets),
  headers: { authorization: "Bearer bench-token-bench-token-bench-token" },
});
serve((request, response) => void proxy.web(request, response));
