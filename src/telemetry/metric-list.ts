/** Bucket bounds in seconds: from a provider close by up to the default deadline. */
const CALL_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * All metrics, with name and help text. Values of several processes are summed unless `aggregator` says otherwise.
 * `bounds` are the upper bounds of a histogram's buckets, in seconds. docs/monitoring.md has the same table.
 */
export const METRICS = {
  calls: {
    name: "relay_calls_total",
    help: "Calls, by outcome.",
    labels: ["provider", "surface", "status_class", "error_type"],
  },
  callDuration: {
    name: "relay_call_duration_seconds",
    help: "Duration of whole calls, from the request's headers; for a streamed answer, until its headers.",
    labels: ["provider"],
    bounds: CALL_BOUNDS,
  },
  callProviderDuration: {
    name: "relay_call_provider_duration_seconds",
    help: "Time that calls spent waiting for the provider; for a streamed answer, until its headers.",
    labels: ["provider"],
    bounds: CALL_BOUNDS,
  },
  callRelayDuration: {
    name: "relay_call_relay_duration_seconds",
    help: "Time that calls spent in the relay: reading the request, checks, store, answer; excluding the wait for a token refresh.",
    labels: ["provider"],
    bounds: [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5],
  },
  callsInFlight: { name: "relay_calls_in_flight", help: "Calls in flight." },
  maxCallsInFlight: { name: "relay_max_calls_in_flight", help: "Value of RELAY_MAX_IN_FLIGHT." },
  bufferedBytes: { name: "relay_buffered_bytes", help: "Bytes of request and answer bodies held in memory." },
  maxBufferedBytes: { name: "relay_max_buffered_bytes", help: "Value of RELAY_MAX_BUFFERED_BYTES." },
  rejected: {
    name: "relay_rejected_total",
    help: "Requests refused because a limit was reached, by reason: calls in flight, buffered bytes, or still being read when others needed the room.",
  },
  callRecordsDropped: {
    name: "relay_call_records_dropped_total",
    help: "Calls that were not recorded because the store was slow or unavailable.",
  },
  refreshes: {
    name: "relay_refreshes_total",
    help: "Refreshes of access tokens, by outcome.",
    labels: ["provider", "outcome"],
  },
  webhookDeliveries: {
    name: "relay_webhook_deliveries_total",
    help: "Attempts to deliver a webhook, by outcome.",
    labels: ["outcome"],
    expected: [{ outcome: "delivered" }, { outcome: "retry" }, { outcome: "given_up" }],
  },
  connections: {
    name: "relay_connections",
    help: "Stored connections by state, counted at most once a minute.",
    aggregator: "max",
  },
  connectionsRefreshFailing: {
    name: "relay_connections_refresh_failing",
    help: "Active connections whose last refresh failed, counted at most once a minute.",
    aggregator: "max",
  },
  storeDuration: {
    name: "relay_store_duration_seconds",
    help: "Database reads and writes, including the wait for a lock or a connection. Rows cached in memory do not count.",
    labels: ["operation"],
    expected: [{ operation: "read" }, { operation: "write" }],
    // From a row in SQLite's own cache up to the database timeout.
    bounds: [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  },
  storeFailures: {
    name: "relay_store_failures_total",
    help: "Database reads and writes that failed.",
    labels: ["operation"],
    expected: [{ operation: "read" }, { operation: "write" }],
  },
  storeCheckOk: {
    name: "relay_store_check_ok",
    help: "1 if the last check passed, 0 if it failed: another file is at the path, nothing can be written, or pages are damaged.",
    aggregator: "min",
  },
  clientConnections: { name: "relay_client_connections", help: "Open TCP connections on the public port." },
  clientConnectionsRefused: {
    name: "relay_client_connections_refused_total",
    help: "TCP connections refused because the limit of all clients or of one was reached.",
  },
  faults: {
    name: "relay_faults_total",
    help: "Faults, by where they occurred; client and session are client errors. The log has the details.",
    labels: ["where"],
  },
  logLinesDropped: {
    name: "relay_log_lines_dropped_total",
    help: "Log lines dropped because the log was not read fast enough.",
  },
  eventLoopDelay: {
    name: "relay_event_loop_delay_seconds",
    help: "Event loop delay since the last scrape; the worst of all processes.",
    aggregator: "max",
  },
  processes: { name: "relay_processes", help: "Processes that answered this scrape." },
  buildInfo: { name: "relay_build_info", help: "Versions; always 1.", aggregator: "max" },
  cpuSeconds: { name: "process_cpu_seconds_total", help: "CPU time, user and system." },
  residentMemory: { name: "process_resident_memory_bytes", help: "Resident memory." },
  heapUsed: { name: "nodejs_heap_size_used_bytes", help: "Used V8 heap." },
  externalMemory: { name: "nodejs_external_memory_bytes", help: "Memory of buffers outside the V8 heap." },
  startTime: {
    name: "process_start_time_seconds",
    help: "Start time of the oldest process, in seconds since the epoch.",
    aggregator: "min",
  },
} as const;
