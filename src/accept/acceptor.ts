/**
 * The HTTP server: sockets in, owned request bodies out to the {@link Intake}, or a refusal.
 *
 * In: HTTP/1.1 on one port. Out: export bodies to the intake; everything else to the mounted apps.
 * Owner: the main thread. Full: bodies beyond the byte budget are answered 503 with `Retry-After`.
 * Stop: the port is closed and new requests on old connections are answered 503; `stop` resolves when every request
 * taken before has its answer, or at the deadline. `close` cuts what is left.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import type { Counters } from '../core/counters.ts';
import type { HttpApp } from '../core/http.ts';
import type { BodyEncoding, Intake } from '../core/intake.ts';
import { type Clock, type Stage, systemClock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { Admission, RefusalCode } from '../core/outcome.ts';
import { createBudget } from './budget.ts';
import { createCors } from './cors.ts';
import { ExportRequest, GATHERED_BYTES, type ExportContext } from './export.ts';
import { codingOf, encodingOf, Head, type HeadFault } from './head.ts';
import { listen, type Listening, type ListenSettings } from './listen.ts';
import { serve } from './mount.ts';
import { createReadiness, type Phase } from './readiness.ts';
import { replyTo, type Reply } from './reply.ts';
import { createRequestIds } from './requestid.ts';
import { createScratchShelf } from './scratch.ts';
import { endHead, sendReply, writeCommonHeaders, type OriginHeaders } from './send.ts';

export interface AcceptorSettings extends ListenSettings {
  readonly maxBodyBytes: number;
  readonly maxInflightBytes: number;
  /** Used when a request brings no key of its own; null: such requests are 401. */
  readonly apiKey: string | null;
  /** Used when a request names no project; null: the span's attribute, then `default`, decides. */
  readonly project: string | null;
  readonly corsAllowOrigins: readonly string[];
}

export interface AcceptorDependencies {
  readonly intake: Intake;
  readonly counters: Counters;
  readonly log: Log;
  /** Why stages are not ready, in words; empty when they are. */
  readonly stageReasons: () => string[];
  /** Asked in this order; the first that claims a path gets the request. */
  readonly apps: readonly HttpApp[];
  readonly clock?: Clock;
}

export interface Acceptor extends Stage {
  /** The port listened on, once started. */
  readonly port: number;
  /** Bytes of bodies between socket and rings right now. */
  readonly inflightBytes: number;
  readonly phase: Phase;
  /** Why it is not ready; empty when it is. */
  reasons(): readonly string[];
  /** From here on requests are taken: everything behind is running. */
  ready(): void;
  /** Cuts every connection. */
  close(): void;
}

/** Ways that SDK configurations spell the path: with the default path appended once more, or with a slash at the end. */
const TRACES_PATHS = ['/v1/traces', '/v1/traces/', '/v1/traces/v1/traces', '/v1/traces/v1/traces/'];
const SCRATCH_COUNT = 16;
const BUSY_RETRY_MS = 1000;

export function createAcceptor(settings: AcceptorSettings, dependencies: AcceptorDependencies): Acceptor {
  const { counters, log, intake, apps } = dependencies;
  const clock = dependencies.clock ?? systemClock;
  const readiness = createReadiness(clock, dependencies.stageReasons);
  const budget = createBudget(settings.maxInflightBytes);
  const cors = createCors(settings.corsAllowOrigins);
  const nextRequestId = createRequestIds();
  const head = new Head();
  let listening: Listening | null = null;
  let activeCount = 0;
  let idle: (() => void) | null = null;

  const finished = (): void => {
    activeCount--;
    if (activeCount === 0) idle?.();
  };
  const context: ExportContext = {
    intake,
    budget,
    scratch: createScratchShelf(GATHERED_BYTES, SCRATCH_COUNT),
    readiness,
    counters,
    log,
    maxBodyBytes: settings.maxBodyBytes,
    clock,
    finished,
  };

  /** Answers a request whose body is not wanted. The server reads and forgets the rest of it, for 10 s at most. */
  const turnAway = (
    response: HttpResponse,
    admission: Admission,
    encoding: BodyEncoding,
    requestId: string,
    origin: OriginHeaders,
  ): void => {
    if (admission.kind !== 'accepted') {
      counters.add(admission.kind === 'busy' ? 'requests_busy' : 'requests_refused');
      counters.add(admission.kind === 'busy' ? `busy_${admission.code}` : `refused_${admission.code}`);
      log.warn({ requestId, code: admission.code, reason: admission.message }, 'request turned away');
    }
    sendReply(response, replyTo(admission, encoding), {
      requestId,
      origin,
      close: readiness.phase === 'draining',
    });
  };

  /**
   * Ends the connection without an answer: where the body ends is not certain, and what follows may be a request that
   * somebody smuggled past a proxy. After an answer the server library would go on to read it.
   */
  const cut = (response: HttpResponse, requestId: string): void => {
    counters.add('requests_refused');
    counters.add('refused_malformed');
    log.warn({ requestId }, 'request with ambiguous framing cut off');
    response.close();
  };

  const takeExport = (response: HttpResponse, request: HttpRequest): void => {
    head.read(request);
    const requestId = head.safeRequestId || nextRequestId();
    const origin = cors.enabled ? cors.answer(head.origin) : null;
    const encoding = encodingOf(head.contentType);
    counters.add('requests');
    if (head.fault === 'malformed-framing') return cut(response, requestId);
    const turnedAway = admit(encoding);
    if (turnedAway !== null) return turnAway(response, turnedAway, encoding ?? 'json', requestId, origin);
    const coding = codingOf(head.contentCoding);
    if (encoding === null || coding === null) return;
    const exportRequest = new ExportRequest(context, response, {
      requestId,
      origin,
      encoding,
      coding,
      apiKey: head.apiKey !== '' ? head.apiKey : (settings.apiKey ?? ''),
      project: head.project !== '' ? head.project : settings.project,
      declaredBytes: head.declaredBytes,
    });
    activeCount++;
    exportRequest.start(response);
  };

  /** What the head alone decides; null lets the request in. */
  const admit = (encoding: BodyEncoding | null): Admission | null => {
    if (head.fault !== null) return refused('malformed', faultMessage(head.fault));
    if (readiness.phase !== 'ready') return busyWhile(readiness.phase);
    if (head.apiKey === '' && settings.apiKey === null) {
      return refused('unauthenticated', 'no API key: send the header X-API-Key, or set SERVICE_API_KEY on the proxy');
    }
    if (encoding === null) {
      return refused('unsupported-media-type', 'Content-Type must be application/x-protobuf or application/json');
    }
    if (codingOf(head.contentCoding) === null) {
      return refused('unsupported-coding', 'Content-Encoding must be gzip, deflate, zstd or identity');
    }
    return null;
  };

  const takeOther = (response: HttpResponse, request: HttpRequest): void => {
    const path = request.getUrl();
    const method = request.getCaseSensitiveMethod().toUpperCase();
    head.read(request);
    const requestId = head.safeRequestId || nextRequestId();
    if (head.fault === 'malformed-framing') return cut(response, requestId);
    if (path === '/live' || path === '/ready') return answerHealth(response, path, method, requestId);
    const isTraces = TRACES_PATHS.includes(path);
    const claimant = isTraces ? undefined : apps.find((candidate) => candidate.claims(path));
    if (claimant !== undefined) {
      const { phase } = readiness;
      if (phase !== 'ready' && claimant.servesAlways !== true) {
        return turnAway(response, busyWhile(phase), 'json', requestId, null);
      }
      activeCount++;
      return serve({ budget, log, finished }, claimant, response, request, requestId);
    }
    if (isTraces && method === 'OPTIONS') return answerOptions(response, requestId);
    const refusal = isTraces
      ? refused('method-not-allowed', 'spans are sent with POST')
      : refused('not-found', 'nothing here; spans go to POST /v1/traces');
    const reply = replyTo(refusal, encodingOf(head.contentType) ?? 'json');
    sendWithoutExport(response, reply, method, requestId, cors.enabled ? cors.answer(head.origin) : null);
  };

  const sendWithoutExport = (
    response: HttpResponse,
    reply: Reply,
    method: string,
    requestId: string,
    origin: OriginHeaders,
  ): void => {
    if (method !== 'HEAD') return sendReply(response, reply, { requestId, origin, close: false });
    response.writeStatus(reply.status).writeHeader('Content-Type', reply.contentType);
    writeCommonHeaders(response, { requestId, origin, close: false });
    for (const [name, value] of reply.headers) response.writeHeader(name, value);
    endHead(response, Buffer.byteLength(reply.body));
  };

  const answerOptions = (response: HttpResponse, requestId: string): void => {
    const origin = cors.preflight(head.origin);
    response.writeStatus('204 No Content').writeHeader('Allow', 'POST, OPTIONS');
    writeCommonHeaders(response, { requestId, origin, close: false });
    response.endWithoutBody();
  };

  const answerHealth = (response: HttpResponse, path: '/live' | '/ready', method: string, requestId: string): void => {
    const options = { requestId, origin: null, close: false };
    if (method !== 'GET' && method !== 'HEAD') {
      response.writeStatus('405 Method Not Allowed').writeHeader('Allow', 'GET, HEAD');
      writeCommonHeaders(response, options);
      response.end('');
      return;
    }
    const reasons = path === '/live' ? [] : readiness.reasons();
    const body = JSON.stringify(
      path === '/live'
        ? { status: 'alive' }
        : reasons.length === 0
          ? { status: 'ready' }
          : { status: 'unready', reasons },
    );
    response.writeStatus(reasons.length === 0 ? '200 OK' : '503 Service Unavailable');
    response.writeHeader('Content-Type', 'application/json').writeHeader('Cache-Control', 'no-store');
    writeCommonHeaders(response, options);
    if (method === 'HEAD') endHead(response, body.length);
    else response.end(body);
  };

  /** Nothing thrown while a head is handled may reach the server library: it would end the process. */
  const guarded =
    (handler: (response: HttpResponse, request: HttpRequest) => void) =>
    (response: HttpResponse, request: HttpRequest): void => {
      try {
        handler(response, request);
      } catch (error) {
        log.error({ err: error }, 'request handling failed');
        counters.add('requests_refused');
        counters.add('refused_internal');
        failHard(response);
      }
    };

  const failHard = (response: HttpResponse): void => {
    const reply = replyTo(refused('internal', 'internal error'), encodingOf(head.contentType) ?? 'json');
    try {
      sendReply(response, reply, { requestId: head.safeRequestId || nextRequestId(), origin: null, close: true });
    } catch (error) {
      // The response had been ended or its connection lost: the client has an answer or nobody to give one to.
      log.debug({ err: error }, 'no way to answer 500');
    }
  };

  return {
    get port() {
      return listening?.port ?? 0;
    },
    get inflightBytes() {
      return budget.usedBytes;
    },
    get phase() {
      return readiness.phase;
    },
    reasons: () => readiness.reasons(),
    start: async () => {
      listening ??= await listen(settings, (app) => {
        for (const path of TRACES_PATHS) app.post(path, guarded(takeExport));
        app.any('/*', guarded(takeOther));
      });
    },
    ready: () => {
      if (readiness.phase === 'starting') readiness.enter('ready');
    },
    stop: async (deadlineMs) => {
      readiness.enter('draining');
      listening?.stopListening();
      if (activeCount === 0) return;
      const waiting = new AbortController();
      idle = () => waiting.abort();
      await clock.sleep(deadlineMs, waiting.signal);
      idle = null;
    },
    close: () => {
      listening?.close();
    },
  };
}

function refused(code: RefusalCode, message: string): Admission {
  return { kind: 'refused', code, message };
}

function busyWhile(phase: 'starting' | 'draining'): Admission {
  return { kind: 'busy', code: phase, message: `the proxy is ${phase}`, retryAfterMs: BUSY_RETRY_MS };
}

function faultMessage(fault: HeadFault): string {
  switch (fault) {
    case 'malformed-framing':
      return 'malformed Content-Length or Transfer-Encoding';
    case 'malformed-api-key':
      return 'X-API-Key must be at most 512 visible ASCII characters';
    case 'malformed-project':
      return 'the project header must be at most 512 characters without control characters';
  }
}
