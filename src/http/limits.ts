/** The limits of a port, with their defaults and the reason for each. Times in milliseconds. */
export const DEFAULT_LIMITS = {
  /**
   * From the connection (or the first byte of a later request) to the end of the header section. That is one or two
   * packets; ten seconds forgive three lost ones.
   */
  headersTimeoutMs: 10_000,
  /** From the first byte of a request to the last of its body: 10 MiB at 3 Mbit/s. */
  requestTimeoutMs: 30_000,
  /**
   * How long a client may read nothing of an answer that is being sent, streams included. The same as for receiving a
   * request: the most that is written at once, 256 KiB, takes as long at 9 KB/s.
   */
  writeTimeoutMs: 30_000,
  /**
   * How often the timeouts above are checked, and so how late they may fire: at most a fifth of the shortest. Walking
   * 4,000 connections takes well under a millisecond.
   */
  checkIntervalMs: 2_000,
  /**
   * How long an HTTP/1.1 connection may be idle between two requests. Longer than the 60 s for which load balancers
   * keep a backend connection, so that they close it first.
   */
  keepAliveTimeoutMs: 65_000,
  /**
   * How long an HTTP/2 connection without an open stream is kept after its last request: typed clients keep channels
   * open between calls, and a new connection costs them one to three round trips. One with an open stream and no
   * further request is pinged at this interval, and closed when it does not answer within `headersTimeoutMs`.
   */
  sessionIdleTimeoutMs: 120_000,
  /**
   * How often an HTTP/2 connection without new requests is pinged; closed without an answer in `headersTimeoutMs`. A
   * client that broke the protocol and vanished is kept little longer than that. A ping is 17 bytes.
   */
  probeIntervalMs: 15_000,
  /**
   * Size of a request's header section in bytes; with HTTP/2 counted as RFC 9113 section 6.5.2 does. Node's own
   * default; browsers and proxies stay below 8 KiB.
   */
  maxHeaderBytes: 16 * 1024,
  /** Fields in a header section, pseudo-header fields included. Browsers behind two proxies send about 40. */
  maxHeaders: 100,
  /**
   * Concurrent TCP connections; further ones are closed at once. Below the usual 4,096 file descriptors, with room for
   * the store and for sockets to providers.
   */
  maxConnections: 4_000,
  /**
   * The same of one client, see `clientNetworkOf()`. A quarter of `maxConnections`, so that three more clients find room
   * beside one that takes all it can, for example by abandoning connections that then wait to be closed. As many as
   * RELAY_MAX_IN_FLIGHT, which one server may need over HTTP/1.1.
   */
  maxClientConnections: 1_000,
  /**
   * Requests on one HTTP/1.1 connection, after which it is closed: a new instance behind a load balancer gets its share
   * of long-lived connections. One handshake in 10,000 calls.
   */
  maxRequestsPerSocket: 10_000,
  /**
   * Pipelined requests that wait on all HTTP/1.1 connections. Above it, a connection on which more than a few wait is
   * closed. Some 10 MB; clients that pipeline send a handful, and a thousand connections full of requests would take
   * 5 GB.
   */
  maxQueuedRequests: 5_000,
  /**
   * Concurrent streams on one HTTP/2 connection. RFC 9113 section 6.5.2 recommends no fewer than 100; more only helps
   * attackers (CVE-2023-44487).
   */
  maxConcurrentStreams: 100,
};

/** The limits of one port. */
export type ListenerLimits = Readonly<typeof DEFAULT_LIMITS>;
