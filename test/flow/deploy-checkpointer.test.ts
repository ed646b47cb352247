import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { stateLocation } from '../../src/deploy/store/location.ts';
import { describeOnEachEngine } from '../deploy-engines.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RUNNER = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));

interface Report {
  numPassedTests: number;
  numFailedTests: number;
  testResults: { assertionResults: { status: string; fullName: string }[] }[];
}

describeOnEachEngine('the checkpointer', (engine) => {
  it('passes the published validation', async () => {
    const database = await engine.create();
    try {
      const run = promisify(execFile)(
        process.execPath,
        // Patient: machines are busy at times.
        [
          ...[RUNNER, 'run', '--globals', '--reporter=json', '--testTimeout=60000', '--hookTimeout=60000'],
          ...['--dir', 'test/validation', 'saver.spec.ts'],
        ],
        {
          cwd: ROOT,
          maxBuffer: 64 * 1024 * 1024,
          env: { ...process.env, STATE_LOCATION: JSON.stringify(stateLocation(database.location)) },
        },
      );
      const { stdout } = await run.catch((error: unknown) => error as { stdout: string });
      const report = JSON.parse(stdout.slice(stdout.indexOf('{'))) as Report;
      const failed = report.testResults
        .flatMap((result) => result.assertionResults)
        .filter((result) => result.status === 'failed')
        .map((result) => result.fullName);
      assert.deepEqual(failed, []);
      assert.ok(report.numPassedTests > 700, `${report.numPassedTests} passed`);
    } finally {
      await database.remove();
    }
  });
});
