import { request } from "undici";
import { expect, it } from "vitest";
import { answerWith, bearer, send, startViaBed } from "../api/via/via-bed.js";

it("an answer whose field has the user's token for a name is passed on without that field", async () => {
  const bed = await startViaBed();
  bed.answer = answerWith(200, { [`x-${bed.token}`]: "1", "x-count": "2" }, "[]");
  const passed = await send(bed, bed.via("/a"), { fields: bearer(bed) });
  const url = `${bed.harness.url}/oauth/method/plain/stream?user_id=ada`;
  const body = JSON.stringify({ url: `http://${bed.host}/a`, method: "GET" });
  const raw = await request(url, { method: "POST", headers: bearer(bed), body });
  const streamed = { status: raw.statusCode, fields: raw.headers, text: await raw.body.text() };
  await bed.close();
  for (const { status, fields, text } of [passed, streamed]) {
    expect([status, fields["x-count"], text]).toEqual([200, "2", "[]"]);
    expect(JSON.stringify(fields)).not.toContain(bed.token);
  }
});
