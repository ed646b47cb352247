/** `GET /api/config`: the configuration in effect, as `--check` prints it. It never changes while the process runs. */
import type { HttpApp } from '../core/http.ts';
import type { EffectiveConfig } from '../core/pipeline.ts';

const PATH = '/api/config';

export function createConfigApp(config: EffectiveConfig): HttpApp {
  const body = JSON.stringify(config);
  return {
    maxBodyBytes: 0,
    servesAlways: true,
    claims: (path) => path === PATH,
    handle: ({ method }) => {
      const isRead = method === 'GET' || method === 'HEAD';
      return {
        status: isRead ? 200 : 405,
        headers: {
          'content-type': 'application/json',
          'cache-control': 'no-store',
          ...(isRead ? {} : { allow: 'GET, HEAD' }),
        },
        body: isRead ? body : JSON.stringify({ error: 'only GET and HEAD' }),
      };
    },
  };
}
