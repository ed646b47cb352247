/** What a newcomer sees before there is a trace: how to send the first. */
import { CopyButton } from '../../parts/copy.tsx';
import { Empty } from '../../parts/states.tsx';

export function Welcome() {
  const base = location.origin;
  const variables = `export OTEL_EXPORTER_OTLP_ENDPOINT=${base}\nexport OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf`;
  return (
    <Empty title="No traces yet">
      <p class="quiet">This page shows them as they arrive. Point an application here, with any OpenTelemetry SDK:</p>
      <Snippet text={() => variables} shown={variables} what="Variables" />
      <p class="quiet">or send one by hand:</p>
      <Snippet text={() => curlText(base)} shown={curlText(base)} what="Command" />
      <p class="quiet">
        <code>npm run demo</code> in another terminal sends a whole agent workload.
      </p>
    </Empty>
  );
}

function Snippet({
  text,
  shown,
  what,
}: {
  readonly text: () => string;
  readonly shown: string;
  readonly what: string;
}) {
  return (
    <div class="snippet">
      <pre tabIndex={0}>{shown}</pre>
      <CopyButton text={text} what={what}>
        Copy
      </CopyButton>
    </div>
  );
}

/** A trace of one model call that has just ended; another one at each call, since ids are taken once. */
function curlText(base: string): string {
  const hex = (length: number): string =>
    Array.from(crypto.getRandomValues(new Uint8Array(length)), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const text = (key: string, stringValue: string): object => ({ key, value: { stringValue } });
  const endMs = Date.now();
  const span = {
    traceId: hex(16),
    spanId: hex(8),
    name: 'chat',
    kind: 3,
    startTimeUnixNano: `${endMs - 800}000000`,
    endTimeUnixNano: `${endMs}000000`,
    attributes: [
      text('gen_ai.operation.name', 'chat'),
      text('gen_ai.prompt', '[{"role":"user","content":"Hello?"}]'),
      text('gen_ai.completion', '[{"role":"assistant","content":"Hi!"}]'),
    ],
  };
  const body = { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] };
  return `curl ${base}/v1/traces -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
}
