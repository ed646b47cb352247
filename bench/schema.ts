/** The OTLP schema in `proto/`, loaded at run time: what the corpora are encoded with and what the obvious way decodes with. */
import protobuf from 'protobufjs';
import { fileURLToPath } from 'node:url';

export interface OtlpSchema {
  readonly request: protobuf.Type;
  readonly response: protobuf.Type;
}

export function loadSchema(): OtlpSchema {
  const root = protobuf.loadSync(fileURLToPath(new URL('../proto/collector.proto', import.meta.url))).resolveAll();
  return {
    request: root.lookupType('opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest'),
    response: root.lookupType('opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse'),
  };
}
