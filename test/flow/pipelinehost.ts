/** A whole service in this process, with an embedded backend of its own behind it, for tests from socket to store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBackendClient, type BackendClient } from '../../src/backend/client.ts';
import { startBackend, type RunningBackend } from '../../src/backend/owner.ts';
import type { BackendSettings } from '../../src/backend/settings.ts';
import { allowLongHeads, readConfig } from '../../src/config.ts';
import { silentLog } from '../../src/core/log.ts';
import { createService, type Service } from '../../src/service.ts';

export interface Host {
  readonly service: Service;
  readonly backend: RunningBackend;
  readonly client: BackendClient;
  /** Of `/v1/traces`. */
  readonly url: string;
  /** Ends both; the service first, within `deadlineMs`. */
  stop(deadlineMs?: number): Promise<void>;
}

export async function startHost(
  environment: Record<string, string> = {},
  backendSettings: Partial<BackendSettings> = {},
): Promise<Host> {
  const backend = await startBackend({ faults: true, ...backendSettings });
  const service = await startService({ SERVICE_ENDPOINT: backend.url, ...environment });
  return {
    service,
    backend,
    client: createBackendClient(backend.url),
    url: tracesUrl(service),
    stop: async (deadlineMs = 5000) => {
      await service.stop(deadlineMs);
      await backend.stop(1000);
    },
  };
}

/** Quick flushes and retries, so that tests are; everything else as it ships. */
export async function startService(environment: Record<string, string>): Promise<Service> {
  allowLongHeads();
  const { config, effective, warnings } = readConfig(
    {
      HOST: '127.0.0.1',
      HTTP_PORT: '0',
      EMBEDDED_PORT: '0',
      SERVICE_API_KEY: 'configured-key',
      FLUSH_INTERVAL_MS: '20',
      RETRY_BACKOFF_MS: '5',
      DATA_DIR: ownFolder(),
      ...environment,
    },
    { coreCount: 2 },
  );
  const service = createService(config, silentLog, { effective: { variables: effective, warnings } });
  try {
    await service.start();
  } catch (error) {
    await service.stop(0);
    throw error;
  }
  return service;
}

/** Of one service, gone with this process. */
function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'proxy-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function tracesUrl(service: Service): string {
  return `http://127.0.0.1:${service.port}/v1/traces`;
}
