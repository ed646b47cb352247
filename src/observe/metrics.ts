/** `GET /metrics`: the registry for Prometheus, or with `?format=json` as JSON. */
import type { HttpApp } from '../core/http.ts';
import { CONTENT_TYPES, formatFor, renderFamilies, type Family, type Labels } from './exposition.ts';
import { ownFamilies } from './families.ts';
import type { Figurebook } from './figures.ts';
import { otelcolFamilies } from './otelcol.ts';

export interface MetricsSettings {
  readonly version: string;
  /** Tells this process from others of the same service. */
  readonly instanceId: string;
}

const SERVICE_NAME = 'collector-proxy';

export function createMetricsApp(settings: MetricsSettings, figures: Figurebook): HttpApp {
  // As the collector labels its own, and dashboards group by.
  const service: Labels = {
    service_name: SERVICE_NAME,
    service_version: settings.version,
    service_instance_id: settings.instanceId,
  };
  const target: Family = {
    type: 'gauge',
    name: 'target_info',
    help: 'What this is.',
    samples: [{ labels: service, value: 1 }],
  };
  return {
    maxBodyBytes: 0,
    servesAlways: true,
    claims: (path) => path === '/metrics',
    handle: (request) => {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return {
          status: 405,
          headers: { allow: 'GET, HEAD', 'content-type': 'text/plain' },
          body: 'only GET and HEAD\n',
        };
      }
      const asked = new URLSearchParams(request.query).get('format') ?? '';
      if (!['', 'prometheus', 'json'].includes(asked)) {
        return { status: 422, headers: { 'content-type': 'text/plain' }, body: 'format: must be prometheus or json\n' };
      }
      const families = [target, ...otelcolFamilies(figures, service), ...ownFamilies(figures)];
      if (asked === 'json') {
        const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
        return { status: 200, headers, body: JSON.stringify({ metrics: families }) };
      }
      const format = formatFor(request.header('accept'));
      return {
        status: 200,
        headers: { 'content-type': CONTENT_TYPES[format], 'cache-control': 'no-store' },
        body: renderFamilies(families, format),
      };
    },
  };
}
