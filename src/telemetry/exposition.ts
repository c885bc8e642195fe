import { AggregatorRegistry, Registry } from "prom-client";
import type { Metric } from "./metric.js";

/** Media type of {@link expositionOf} (Prometheus text format 0.0.4). */
export const EXPOSITION_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** Metrics of one or more processes, added up, as text for Prometheus. */
export function expositionOf(processes: ReadonlyArray<readonly Metric[]>): Promise<string> {
  return registryOf(processes).metrics();
}

/** Metrics of several processes as if they were one. */
export async function sumOf(processes: ReadonlyArray<readonly Metric[]>): Promise<readonly Metric[]> {
  return (await registryOf(processes).getMetricsAsJSON()) as unknown as readonly Metric[];
}

function registryOf(processes: ReadonlyArray<readonly Metric[]>): Registry {
  return AggregatorRegistry.aggregate(processes as unknown as object[]);
}
