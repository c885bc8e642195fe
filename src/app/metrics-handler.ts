import type { Admit } from "../admin/admit.js";
import { answerNotAdmitted } from "../admin/not-admitted.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "../http/exchange.js";
import type { PathHandler } from "../http/router.js";
import { EXPOSITION_TYPE, expositionOf } from "../telemetry/exposition.js";
import type { Metric } from "../telemetry/metric.js";

/** What showing metrics needs. */
export interface MetricsHandlerOptions {
  readonly admit: Admit;
  /** How everything stands. Rejects when not all processes can be asked. */
  readonly read: () => Promise<readonly Metric[]>;
  readonly onFault: (where: string, error: unknown) => void;
}

/** Where a scraper asks. */
export const METRICS_PATH = "/metrics";

/** `GET /metrics` in the text format of Prometheus, for the holder of any admin token. */
export function createMetricsHandler(options: MetricsHandlerOptions): PathHandler {
  return (request, response, path) => (path === METRICS_PATH ? answer(options, request, response) : undefined);
}

async function answer(
  { admit, read, onFault }: MetricsHandlerOptions,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  const admission = admit(request);
  if (!admission.isAdmitted) return answerNotAdmitted(request, response, admission.waitSeconds);
  const { method } = request;
  if (method !== "GET" && method !== "HEAD") {
    return answerPlain(response, 405, "Send a GET request.", { allow: "GET, HEAD" });
  }
  let text: string;
  try {
    text = await expositionOf([await read()]);
  } catch (error) {
    onFault("metrics", error);
    return answerPlain(response, 503, "The metrics of the other processes cannot be had right now.");
  }
  const body = Buffer.from(text);
  response.writeHead(200, {
    "content-type": EXPOSITION_TYPE,
    "content-length": String(body.length),
    "cache-control": "no-store",
  });
  response.end(body);
}
