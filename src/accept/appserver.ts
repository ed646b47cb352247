/**
 * A port of its own for one {@link HttpApp}. In: HTTP/1.1. Out: requests to the app, as the acceptor hands them on. Owner: the
 * main thread. Full: bodies beyond the byte budget are answered 503. Stop: the port is closed; `stop` resolves when every
 * request taken before has its answer, or at the deadline. `close` cuts what is left.
 */
import type { HttpApp } from '../core/http.ts';
import { type Clock, type Stage, systemClock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { Admission } from '../core/outcome.ts';
import { createBudget } from './budget.ts';
import { Head } from './head.ts';
import { listen, type Listening, type ListenSettings } from './listen.ts';
import { serve, type MountContext } from './mount.ts';
import { replyTo } from './reply.ts';
import { createRequestIds } from './requestid.ts';
import { sendReply } from './send.ts';

export interface AppServer extends Stage {
  /** The port listened on, once started. */
  readonly port: number;
  /** From here on the app gets the requests; before, they are told to come back. */
  mount(app: HttpApp): void;
  /** Cuts every connection. */
  close(): void;
}

const BUSY_RETRY_MS = 1000;

export function createAppServer(
  settings: ListenSettings & {
    readonly maxInflightBytes: number;
    /** Told to whoever asks for a path that is not there. */
    readonly entryPath: string;
  },
  links: { readonly log: Log; readonly clock?: Clock },
): AppServer {
  const { log, clock = systemClock } = links;
  const nextRequestId = createRequestIds();
  const head = new Head();
  let listening: Listening | null = null;
  let app: HttpApp | null = null;
  let isDraining = false;
  let activeCount = 0;
  let idle: (() => void) | null = null;
  const context: MountContext = {
    budget: createBudget(settings.maxInflightBytes),
    log,
    finished: () => {
      activeCount--;
      if (activeCount === 0) idle?.();
    },
  };

  return {
    get port() {
      return listening?.port ?? 0;
    },
    mount: (mounted) => (app = mounted),
    start: async () => {
      listening ??= await listen(settings, (server) => {
        server.any('/*', (response, request) => {
          head.read(request);
          const requestId = head.safeRequestId || nextRequestId();
          // Where the body ends is not certain: see the acceptor.
          if (head.fault === 'malformed-framing') return void response.close();
          const turnAway = (admission: Admission): void =>
            sendReply(response, replyTo(admission, 'json'), { requestId, origin: null, close: isDraining });
          if (app === null || isDraining) {
            const code = isDraining ? 'draining' : 'starting';
            return turnAway({ kind: 'busy', code, message: `the server is ${code}`, retryAfterMs: BUSY_RETRY_MS });
          }
          if (!app.claims(request.getUrl())) {
            return turnAway({ kind: 'refused', code: 'not-found', message: `nothing here; see ${settings.entryPath}` });
          }
          activeCount++;
          serve(context, app, response, request, requestId);
        });
      });
    },
    stop: async (deadlineMs) => {
      isDraining = true;
      listening?.stopListening();
      if (activeCount === 0) return;
      const waiting = new AbortController();
      idle = () => waiting.abort();
      await clock.sleep(deadlineMs, waiting.signal);
      idle = null;
    },
    close: () => listening?.close(),
  };
}
