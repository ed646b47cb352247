/** What `npm run dev` shows: what listens, where runs go, and two things to paste. */
import { randomBytes } from 'node:crypto';
import { MS_US } from './core/units.ts';

export interface BannerFacts {
  readonly version: string;
  readonly port: number;
  readonly secure: boolean;
  /** Base URL of the embedded backend. */
  readonly backendUrl: string;
  readonly dataDir: string;
  /** Null where the deployment API is off. */
  readonly deployment: { readonly port: number; readonly graphIds: readonly string[] } | null;
  /** Whether the console is served. */
  readonly console: boolean;
  /** Of the process's environment: whether output is a terminal that shows colours. */
  readonly colours: boolean;
}

export function bannerText(facts: BannerFacts, nowMs: number): string {
  const base = `${facts.secure ? 'https' : 'http'}://localhost:${facts.port}`;
  const strong = (text: string): string => (facts.colours ? `\u001b[1m${text}\u001b[0m` : text);
  const graphs =
    facts.deployment === null ? null : `${facts.secure ? 'https' : 'http'}://localhost:${facts.deployment.port}`;
  const run = graphs !== null && facts.deployment?.graphIds.includes('echo') === true ? runText(graphs, strong) : '';
  return `
${strong(`Collector Proxy ${facts.version}`)}, development

  Spans in    ${base}/v1/traces  (OTLP over HTTP, JSON or protobuf; no key needed here)
  Runs out    the embedded backend at ${facts.backendUrl}, kept in ${facts.dataDir}
  Look        ${facts.console ? `${strong(`${base}/`)}  (the console)` : `${base}/api/traces`}
${graphs === null ? '' : `  Graphs      ${graphs}/docs  (${facts.deployment?.graphIds.join(', ') || 'none'})\n`}  Health      ${base}/ready

${strong('Send a span:')}

curl -i ${base}/v1/traces -H 'Content-Type: application/json' -d '${exampleBody(nowMs)}'

${run}${strong('Point an application here:')}

export OTEL_EXPORTER_OTLP_ENDPOINT=${base}
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf

Ctrl-C stops; \`npm run demo\` in another terminal sends a whole agent workload.
`;
}

function runText(base: string, strong: (text: string) => string): string {
  const body = JSON.stringify({ assistant_id: 'echo', input: { messages: [{ role: 'user', content: 'Hello?' }] } });
  return `${strong('Run a graph:')}

curl ${base}/runs/wait -H 'Content-Type: application/json' -d '${body}'

`;
}

/** A trace of one model call that ends now; a new one at each start, since the backend takes every id once. */
function exampleBody(nowMs: number): string {
  const nanos = (ms: number): string => `${BigInt(ms) * 1000n * BigInt(MS_US)}`;
  const text = (key: string, value: string): object => ({ key, value: { stringValue: value } });
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: [text('service.name', 'hello')] },
        scopeSpans: [
          {
            spans: [
              {
                traceId: randomBytes(16).toString('hex'),
                spanId: randomBytes(8).toString('hex'),
                name: 'chat',
                kind: 3,
                startTimeUnixNano: nanos(nowMs - 800),
                endTimeUnixNano: nanos(nowMs),
                attributes: [
                  text('gen_ai.operation.name', 'chat'),
                  text('gen_ai.prompt', '[{"role":"user","content":"Hello?"}]'),
                  text('gen_ai.completion', '[{"role":"assistant","content":"Hi!"}]'),
                ],
              },
            ],
          },
        ],
      },
    ],
  });
}
