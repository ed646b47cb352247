/** A decode thread as in workers/decode.ts, with the scripted decoder in it. */
import { threadId, workerData } from 'node:worker_threads';
import { createTaskHandler } from '../../src/decode/thread.ts';
import type { DecodeThreadSettings } from '../../src/decode/task.ts';
import { createFakeDecoder } from './fakedecoder.ts';

export default createTaskHandler(workerData as DecodeThreadSettings, threadId, (settings) => {
  if (settings.converterModule === 'broken') throw new Error('the converter does not load');
  return createFakeDecoder();
});
