import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { silentLog } from '../../src/core/log.ts';
import { openRemoteStore } from '../../src/deploy/store/remote.ts';
import type { DeploymentStore } from '../../src/deploy/store/repositories.ts';

const NOW = Date.UTC(2026, 4, 4, 9);
const THREAD = '01a1f8c5-079e-774d-bc33-a9bb74b0a255';

describe('the thread of the embedded store', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'deploy-'));
  });
  after(() => rm(folder, { recursive: true }));

  const open = (): Promise<DeploymentStore> =>
    openRemoteStore({
      workerUrl: new URL('dyingstore.ts', import.meta.url),
      data: {
        location: { engine: 'sqlite', folder, synchronous: 'normal' },
        instanceId: 'here',
        webhooksDisabled: false,
      },
      log: silentLog,
    });

  it('that dies fails the calls in progress, and the next call finds everything committed', async () => {
    const store = await open();
    await store.threads.create({ threadId: THREAD, metadata: {}, ifExists: 'raise', ttl: null, nowMs: NOW });
    await assert.rejects(store.runs.countByStatus(), /thread ended/);
    assert.equal((await store.threads.get(THREAD))?.threadId, THREAD);
    await store.stop();
    await assert.rejects(store.threads.get(THREAD), /closed/);
    await store.stop();
  });

  it('does not open a folder that another one has open, and says why', async () => {
    const store = await open();
    await assert.rejects(open(), /another process/);
    await store.stop();
    const again = await open();
    await again.stop();
  });

  it('passes errors of the store on with their words', async () => {
    const store = await open();
    await assert.rejects(store.threads.get({} as never), /parameter is an object/);
    await store.stop();
  });
});
