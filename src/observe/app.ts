/** `GET /api/pipeline`, its history and its live stream (core/pipeline.ts says what they answer with). */
import type { HttpApp, HttpRequest, HttpResponse } from '../core/http.ts';
import { HISTORY_SECONDS, type Pipeline } from './pipeline.ts';

const PATHS = ['/api/pipeline', '/api/pipeline/history', '/api/pipeline/events'];
const RETRY_AFTER_SECONDS = 5;

export function createPipelineApp(pipeline: Pipeline): HttpApp {
  return {
    maxBodyBytes: 0,
    servesAlways: true,
    claims: (path) => PATHS.includes(path),
    handle: (request) => {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return problem(405, 'only GET and HEAD', { allow: 'GET, HEAD' });
      }
      switch (request.path) {
        case '/api/pipeline/history':
          return history(pipeline, request);
        case '/api/pipeline/events':
          return events(pipeline, request);
        default:
          return json(pipeline.snapshot());
      }
    },
  };
}

/** `seconds`: how far back, all by default; `series`: names, or beginnings of names with `*`, separated by commas. */
function history(pipeline: Pipeline, request: HttpRequest): HttpResponse {
  const params = new URLSearchParams(request.query);
  for (const name of params.keys()) {
    if (name !== 'seconds' && name !== 'series') return problem(400, `no such parameter: ${name.slice(0, 50)}`);
  }
  const seconds = Number(params.get('seconds') ?? HISTORY_SECONDS);
  if (!(seconds > 0 && seconds <= HISTORY_SECONDS)) return problem(400, `seconds: above 0, at most ${HISTORY_SECONDS}`);
  const names = params.get('series')?.split(',') ?? ['*'];
  const exact = new Set(names);
  const beginnings = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));
  const wanted = (series: string): boolean =>
    exact.has(series) || beginnings.some((beginning) => series.startsWith(beginning));
  return json(pipeline.history(seconds, wanted));
}

function events(pipeline: Pipeline, request: HttpRequest): HttpResponse {
  if (!pipeline.hasRoom) return problem(503, 'too many subscribers', { 'retry-after': String(RETRY_AFTER_SECONDS) });
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  };
  if (request.method === 'HEAD') return { status: 200, headers };
  return { status: 200, headers, stream: (sink) => pipeline.subscribe(sink) };
}

function json(value: unknown): HttpResponse {
  return {
    status: 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify(value),
  };
}

function problem(status: number, message: string, headers: Record<string, string> = {}): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ error: message }),
  };
}
