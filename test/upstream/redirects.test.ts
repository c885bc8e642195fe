import { describe, expect, it } from "vitest";
import { failureOf, get, provider, textOf, upstream, within } from "./upstream-for-test.js";

/** Threats 2C: whatever the provider says about another place, its answer is the answer. */
describe("a redirect", () => {
  const body = "moved";
  const redirect = (status: number, ...fields: string[]) =>
    [`HTTP/1.1 ${status} Moved`, `Content-Length: ${body.length}`, ...fields, "", body].join("\r\n");

  it.each([
    [301, ["Location: http://{evil}/"]],
    [302, ["Location: http://{evil}/"]],
    [303, ["Location: http://{evil}/"]],
    [307, ["Location: http://{evil}/"]],
    [308, ["Location: http://{evil}/"]],
    [302, ["Location: //{evil}/"]],
    [302, ["Location: \\\\{evil}\\"]],
    [302, ["Location: https:{evil}"]],
    [302, ["Location: /again"]],
    [302, ["Location: "]],
    [302, []],
    [302, ["Location: http://{evil}/1", "Location: http://{evil}/2"]],
    [302, ["Location: unix:/var/run/docker.sock"]],
    [302, ["Location: file:///etc/passwd"]],
    [302, ["Location: %zz%0d%0aX: y"]],
    [300, ["Location: http://{evil}/"]],
    [305, ["Location: http://{evil}/"]],
    [
      200,
      ["Refresh: 0; url=http://{evil}/", "Link: <http://{evil}/>; rel=preload", "Content-Location: http://{evil}/"],
    ],
    [200, ['Alt-Svc: h2="{evil}"; persist=1']],
  ])("with status %i and %j is the answer; nobody else is called", async (status, fields) => {
    const evil = await provider(() => {});
    const filled = fields.map((field) => field.replaceAll("{evil}", `127.0.0.1:${evil.port}`));
    const peer = await provider((socket) => socket.write(redirect(status, ...filled)));
    const request = get(peer.origin, { method: "POST", body: Buffer.from('{"a":1}') });
    const answer = await upstream().send(request, within());
    expect(answer.statusCode).toBe(status);
    expect(answer.body.concat().toString()).toBe(body);
    const lines = answer.rawHeaders.join("\n").split("\n");
    for (const field of filled) expect(lines).toContain(field.slice(field.indexOf(":") + 1).trim());
    expect(peer.requests).toHaveLength(1);
    expect(evil.accepted).toBe(0);
  });

  it("with 20 KB of Location is an invalid answer", async () => {
    const peer = await provider((socket) => socket.write(redirect(302, `Location: /${"x".repeat(20_000)}`)));
    await failureOf(upstream().send(get(peer.origin), within()), "PROVIDER_RESPONSE_INVALID");
    expect(peer.requests).toHaveLength(1);
  });

  it("in a circle costs one request for each call", async () => {
    const peer = await provider((socket) => socket.write(redirect(302, "Location: /b")));
    const client = upstream();
    for (const path of ["/a", "/b", "/a"])
      expect(await textOf(client.send(get(peer.origin, { path }), within()))).toBe(body);
    expect(peer.requests).toHaveLength(3);
  });
});
