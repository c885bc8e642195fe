import { Client, FileUpload, LargeFileUploadTask, PageIterator, RetryHandler } from "@microsoft/microsoft-graph-client";
import { caught, defineSdk } from "../sdk.js";

const FILES = Array.from({ length: 5 }, (_, at) => ({ id: `${at + 1}`, name: `File ${at + 1}` }));
const API = "graph.microsoft.com/v1.0";

export const sdk = defineSdk({
  package: "@microsoft/microsoft-graph-client",
  provider: "msgraphfiles",
  connect: (account) =>
    Client.initWithMiddleware({
      middleware: [
        new RetryHandler(),
        {
          execute: async (context) => {
            const isGraph = `${context.request}`.startsWith("https://graph.microsoft.com/");
            context.response = await (isGraph ? account.fetch : fetch)(context.request, context.options);
          },
        },
      ],
    }),
  around: ["acme-my.sharepoint.com"],
  routes: () => ({
    [`POST ${API}/me/drive/root:/*/createUploadSession`]: () => ({
      body: {
        uploadUrl: "https://acme-my.sharepoint.com/_api/v2.0/uploadSession",
        expirationDateTime: "2030-01-01T00:00:00Z",
      },
    }),
    "open PUT acme-my.sharepoint.com/_api/v2.0/uploadSession": ({ fields, before }) =>
      before === 0
        ? { status: 202, body: { expirationDateTime: "2030-01-01T00:00:00Z", nextExpectedRanges: ["327680-"] } }
        : { status: 201, body: { id: "8", range: fields["content-range"] } },
    [`GET ${API}/me/drive/root/children`]: ({ query }) => {
      const skip = Number(query.get("$skiptoken") ?? 0);
      const next = `https://${API}/me/drive/root/children?$top=2&$skiptoken=${skip + 2}`;
      const more = skip + 2 < FILES.length && { "@odata.nextLink": next };
      return { body: { "@odata.context": "c", value: FILES.slice(skip, skip + 2), ...more } };
    },
    [`POST ${API}/me/drive/root/children`]: ({ body, before }) =>
      before === 0
        ? { status: 429, fields: { "retry-after": "0" }, body: { error: { code: "TooManyRequests" } } }
        : { status: 201, body: { id: "6", got: body.toString() } },
    [`PUT ${API}/me/drive/root:/*/content`]: ({ body, parts: [name] }) => ({
      status: 201,
      body: { name, size: body.length },
    }),
    [`GET ${API}/me/drive/items/*/content`]: () => ({
      fields: { "content-type": "application/octet-stream" },
      body: Buffer.from([0, 255, 10, 13, 128]),
    }),
    [`PATCH ${API}/me/drive/items/6`]: ({ body }) => ({ body: { id: "6", got: body.toString() } }),
    [`DELETE ${API}/me/drive/items/6`]: () => ({ status: 204 }),
    [`GET ${API}/me/drive/items/*`]: () => ({
      status: 404,
      body: { error: { code: "itemNotFound", message: "Not found", innerError: { "request-id": "r1" } } },
    }),
  }),
  work: async (graph) => {
    const children = graph.api("/me/drive/root/children");
    const first = await graph.api("/me/drive/root/children").top(2).get();
    const pages: unknown[] = [];
    await new PageIterator(graph, first, (item) => {
      pages.push(item);
      return true;
    }).iterate();
    const created = await children.post({ name: "Grüße", folder: {}, "@microsoft.graph.conflictBehavior": "rename" });
    const session = await LargeFileUploadTask.createUploadSession(
      graph,
      "https://graph.microsoft.com/v1.0/me/drive/root:/large.bin:/createUploadSession",
      {},
    );
    const large = new FileUpload(Buffer.alloc(400_000, "a"), "large.bin", 400_000);
    const { responseBody } = await new LargeFileUploadTask(graph, large, session, { rangeSize: 327_680 }).upload();
    const content: ReadableStream = await graph.api("/me/drive/items/1/content").getStream();
    return {
      list: first,
      pages,
      create: created,
      "rate limit": created.id,
      change: await graph.api("/me/drive/items/6").header("if-match", '"e"').patch({ name: "a" }),
      delete: (await graph.api("/me/drive/items/6").delete()) ?? null,
      upload: [await graph.api("/me/drive/root:/a b.txt:/content").put(Buffer.from("a file\r\n\0")), responseBody],
      download: [...Buffer.from(await new Response(content).arrayBuffer())],
      error: await caught(graph.api("/me/drive/items/9").get(), ({ statusCode, code, message, body }) => [
        statusCode,
        code,
        message,
        body,
      ]),
    };
  },
});
