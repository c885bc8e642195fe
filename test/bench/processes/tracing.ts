// Loaded into the relay with `--import` where traces are measured: an SDK that records what its sampler takes, and sends
// it nowhere. OTEL_TRACES_SAMPLER says which.
import { BatchSpanProcessor, NodeTracerProvider, type SpanExporter } from "@opentelemetry/sdk-trace-node";

const nowhere: SpanExporter = {
  export: (_spans, onResult) => onResult({ code: 0 }),
  shutdown: async () => {},
};

new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] }).register();
