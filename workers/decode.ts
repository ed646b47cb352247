/** A decode thread: request bodies in, records into the rings. Started by the pool in src/decode/pool.ts. */
import { threadId, workerData } from 'node:worker_threads';
import { createDecoder } from '../src/decode/decoder.ts';
import type { DecodeThreadSettings } from '../src/decode/task.ts';
import { createTaskHandler } from '../src/decode/thread.ts';

export default createTaskHandler(workerData as DecodeThreadSettings, threadId, createDecoder);
