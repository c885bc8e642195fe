import { createHash } from "node:crypto";
import type { Answer } from "./answer.js";
import { emptyAnswer, errorAnswer, jsonAnswer } from "./answer.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { getRoute } from "./resource.js";

/** Answers whose point is their fields. `origin` is the sandbox's own. */
export function createFieldRoutes(origin: string): readonly ResourceRoute[] {
  return [
    getRoute("/headers", answerHeaders),
    getRoute("/cookies", () => jsonAnswer('{"cookies":2}', 200, COOKIES)),
    getRoute("/multi", () => jsonAnswer('{"links":3}', 200, LINKS)),
    { path: "/upload/*", methods: ["PUT", "POST"], handle: (request) => answerUpload(request, origin) },
  ];
}

const COOKIES = ["Set-Cookie", "session=sandbox; Path=/; HttpOnly", "Set-Cookie", "theme=dark; Path=/"];

const LINKS = [
  ...["Link", '</items?page=2>; rel="next"'],
  ...["Link", '</items?page=9>; rel="last"'],
  ...["link", '</items?page=1>; rel="first"'],
];

/** Fields that say where a message ends; another value would only break the connection. */
const FRAMING = new Set(["content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "trailer"]);

function answerHeaders({ query }: ResourceRequest): Answer {
  const pairs = [...query];
  const framing = pairs.find(([name]) => FRAMING.has(name.toLowerCase()));
  if (framing !== undefined) return errorAnswer(400, "invalid_request", "Fields of the message framing cannot be set.");
  const contentType = pairs.some(([name]) => name.toLowerCase() === "content-type")
    ? []
    : ["Content-Type", "application/json"];
  const body = Buffer.from(JSON.stringify({ headers: pairs }));
  return { statusCode: 200, fields: [...contentType, ...pairs.flat()], body };
}

/** Location names the content, so that the same upload always gets the same answer; a client can upload there again. */
function answerUpload({ received }: ResourceRequest, origin: string): Answer {
  const id = createHash("sha256").update(received.body).digest("hex").slice(0, 16);
  return emptyAnswer(201, ["Location", `${origin}/upload/${id}`]);
}
