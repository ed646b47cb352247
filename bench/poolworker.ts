/** A decode thread whose decoder does next to nothing: one record of the body's size. For bench/pool.ts. */
import { threadId, workerData } from 'node:worker_threads';
import { alignRecord, RecordOffset } from '../src/core/record.ts';
import type { Decoder } from '../src/decode/decoder.ts';
import type { DecodeThreadSettings } from '../src/decode/task.ts';
import { createTaskHandler } from '../src/decode/thread.ts';

function createCopyingDecoder(): Decoder {
  let record = Buffer.alloc(4096);
  let number = 0;
  return {
    decode: ({ source }, sink) => {
      const lengthBytes = alignRecord(Math.max(source.length, 128));
      if (lengthBytes > record.length) record = Buffer.alloc(lengthBytes);
      record.writeUInt32LE(lengthBytes, RecordOffset.TotalBytes);
      record.writeUInt32LE(number++, RecordOffset.TraceId + 12);
      return sink.put(record, 0, lengthBytes)
        ? { kind: 'decoded', acceptedCount: 1, rejectedCount: 0, message: '' }
        : { kind: 'full' };
    },
  };
}

export default createTaskHandler(workerData as DecodeThreadSettings, threadId, createCopyingDecoder);
