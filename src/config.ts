/**
 * The environment, read once: one table of variables, from which parsing, `--help`, `--check` and the README's table
 * come. All problems are reported together. This is the only file that looks at the environment.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EffectiveVariable } from './core/pipeline.ts';
import { DAY_MS, GiB, HOUR_MS, KiB, MINUTE_MS, MiB, SECOND_MS } from './core/units.ts';
import { signingKey } from './deploy/webhooks/sign.ts';
import {
  choice,
  duration,
  endpoint,
  flag,
  integer,
  list,
  optionalInteger,
  size,
  text,
  type Machine,
  type Variable,
} from './variables.ts';

/** Exit code for a wrong configuration (EX_CONFIG of sysexits.h). */
export const CONFIG_EXIT_CODE = 78;
/** Key with which `dev` uploads to the embedded backend, so that a newcomer needs none. */
export const DEVELOPMENT_KEY = 'development';
/** Found in the working directory when DEPLOYMENT_CONFIG does not say otherwise. */
const USUAL_DEPLOYMENT_CONFIG = './langgraph.json';
/** What `dev` serves when there is no configuration file. */
const EXAMPLE_DEPLOYMENT_CONFIG = fileURLToPath(new URL('./deploy/examples/langgraph.json', import.meta.url));
/** Of one shard. */
const MIN_SPOOL_BYTES = MiB;
const HOSTED_ENDPOINT = 'https://api.smith.langchain.com';
/** uWebSockets.js reads its limit on the size of a request's head here: 16 KiB, as Node does, instead of 4. */
const HEAD_LIMIT = { name: 'UWS_HTTP_MAX_HEADERS_SIZE', value: '16384' } as const;

export type Environment = Readonly<Record<string, string | undefined>>;

export const variables = {
  httpPort: integer('HTTP_PORT', 'Port to listen on; 0 takes any free one.', { fallback: 4318, min: 0, max: 65_535 }),
  host: text('HOST', 'Address or host name to listen on.', {
    fallback: null,
    fallbackText: 'all interfaces',
    allowed: 'address or host name',
    pattern: /^[\w.:%-]+$/,
  }),
  tlsCertFile: text('TLS_CERT_FILE', 'PEM certificate chain; with it the port speaks HTTPS.', {
    fallback: null,
    fallbackText: 'none: plain HTTP',
    allowed: 'path of a file',
  }),
  tlsKeyFile: text('TLS_KEY_FILE', 'PEM private key of that certificate.', {
    fallback: null,
    fallbackText: 'none',
    allowed: 'path of a file',
  }),
  corsAllowOrigins: list('CORS_ALLOW_ORIGINS', 'Web origins whose pages may export spans from a browser.', {
    fallback: [],
    fallbackText: 'none',
    allowed: 'origins such as `https://app.example.com` separated by commas, or `*`',
    pattern: /^(\*|https?:\/\/[\w.:[\]-]+)$/,
  }),
  endpoint: endpoint('SERVICE_ENDPOINT', 'Backend that runs are uploaded to; `embedded` starts the embedded one.', {
    fallback: HOSTED_ENDPOINT,
    aliases: ['LANGSMITH_ENDPOINT', 'LANGCHAIN_ENDPOINT'],
  }),
  apiKey: text('SERVICE_API_KEY', 'Backend key of requests that bring none in `X-API-Key`; without it they are 401.', {
    fallback: null,
    fallbackText: 'none',
    secret: true,
    aliases: ['LANGSMITH_API_KEY', 'LANGCHAIN_API_KEY'],
    allowed: 'visible ASCII, at most 512 characters',
    pattern: /^[\x21-\x7e]+$/,
  }),
  project: text('SERVICE_PROJECT', 'Project of requests that name none in `Service-Project`.', {
    fallback: null,
    fallbackText: 'default',
    aliases: ['LANGSMITH_PROJECT', 'LANGCHAIN_PROJECT'],
  }),
  batchSize: integer('BATCH_SIZE', 'Spans per upload.', { fallback: 100, min: 1, max: 100_000 }),
  flushIntervalMs: duration('FLUSH_INTERVAL_MS', 'Longest wait of a span for its batch to fill.', {
    fallback: SECOND_MS,
    plainUnit: 'ms',
    min: 1,
    max: 10 * MINUTE_MS,
  }),
  maxBufferBytes: size('MAX_BUFFER_BYTES', 'Largest upload, uncompressed; a larger single span travels alone.', {
    fallback: 10 * MiB,
    min: 64 * KiB,
    max: GiB,
  }),
  maxBodyBytes: size('MAX_BODY_BYTES', 'Largest request body, on the wire and after decompression; more is 413.', {
    fallback: 200 * MiB,
    min: KiB,
    max: GiB,
  }),
  maxInflightBytes: size('MAX_INFLIGHT_BYTES', 'Request bodies between socket and rings; more is 503.', {
    fallback: 64 * MiB,
    min: MiB,
    max: 64 * GiB,
  }),
  maxRetries: integer('MAX_RETRIES', 'Retries of an upload after its first attempt.', {
    fallback: 3,
    min: 0,
    max: 100,
  }),
  retryBackoffMs: duration(
    'RETRY_BACKOFF_MS',
    'Wait before the first retry; doubled each time, jittered, at most 30 s.',
    {
      fallback: 100,
      plainUnit: 'ms',
      min: 0,
      max: 30 * SECOND_MS,
    },
  ),
  uploadConcurrency: integer('UPLOAD_CONCURRENCY', 'Uploads in flight at a time.', { fallback: 8, min: 1, max: 1000 }),
  uploadTimeoutMs: duration('UPLOAD_TIMEOUT_MS', 'Longest time for one attempt of an upload.', {
    fallback: 30 * SECOND_MS,
    plainUnit: 'ms',
    min: 100,
    max: 10 * MINUTE_MS,
  }),
  heldMaxBytes: size('HELD_MAX_BYTES', 'Compressed batches that wait for the backend; then the rings fill, then 503.', {
    fallback: 32 * MiB,
    min: MiB,
    max: 64 * GiB,
  }),
  zstdLevel: integer('ZSTD_LEVEL', 'Compression level of uploads.', { fallback: 1, min: 1, max: 19 }),
  spanTtlMs: duration('SPAN_TTL', 'How long a span waits for its ancestors before it goes out under its root.', {
    fallback: 5 * MINUTE_MS,
    plainUnit: 's',
    min: 100,
    max: DAY_MS,
  }),
  parkMaxBytes: size('PARK_MAX_BYTES', 'Spans that wait for their ancestors; beyond it the oldest trace goes out.', {
    fallback: 64 * MiB,
    min: MiB,
    max: 64 * GiB,
  }),
  filterNonGenAi: flag('FILTER_NON_GENAI', 'Leave out spans that carry nothing of GenAI.', { fallback: false }),
  genericOtel: flag('GENERIC_OTEL_ENABLED', 'Translate spans of no known GenAI convention attribute by attribute.', {
    fallback: false,
  }),
  rootRunId: choice('ROOT_RUN_ID', 'Id of a root run: its trace id, or its own span id.', ['trace', 'span'], {
    fallback: 'trace',
  }),
  converterModule: text('CONVERTER_MODULE', 'Module whose exported function converts each span to its run.', {
    fallback: null,
    fallbackText: 'none',
    allowed: 'path of a `.js` or `.ts` file',
  }),
  decodeThreads: integer('DECODE_THREADS', 'Threads that decode and translate.', {
    fallback: ({ coreCount }) => clamp(Math.floor(coreCount / 2), 1, 16),
    fallbackText: 'half the cores, 1 to 16',
    min: 1,
    max: 256,
  }),
  shipShards: integer('SHIP_SHARDS', 'Threads that assemble, compress and upload; traces are spread over them.', {
    fallback: ({ coreCount }) => clamp(Math.floor(coreCount / 4), 1, 8),
    fallbackText: 'a quarter of the cores, 1 to 8',
    min: 1,
    max: 64,
  }),
  ringBytes: size(
    'RING_BYTES',
    'Shared memory between one decode thread and one shipper; there is one for each pair.',
    {
      fallback: ({ coreCount }) => (coreCount <= 4 ? 8 * MiB : 4 * MiB),
      fallbackText: '8MiB up to 4 cores, else 4MiB',
      powerOfTwo: true,
      min: 64 * KiB,
      max: GiB,
    },
  ),
  durableAck: flag('DURABLE_ACK', 'Acknowledge a request only when its body is on disk.', { fallback: false }),
  journalDir: text('JOURNAL_DIR', 'Folder of those bodies, until their spans are delivered; one process a folder.', {
    fallback: null,
    fallbackText: '`journal` in DATA_DIR',
    allowed: 'path of a folder, made when missing',
  }),
  journalMaxBytes: size('JOURNAL_MAX_BYTES', 'Bodies on disk that are not delivered yet; more is 503.', {
    fallback: GiB,
    min: 16 * MiB,
    max: 1024 * GiB,
  }),
  dataDir: text('DATA_DIR', 'Folder of everything kept on disk.', {
    fallback: '.data',
    allowed: 'path of a folder, made when missing',
  }),
  spoolDir: text(
    'SPOOL_DIR',
    'Folder of batches that cannot be delivered now and of dead letters, with the API keys they need; one process at a time.',
    { fallback: null, fallbackText: '`spool` in DATA_DIR', allowed: 'path of a folder, made when missing' },
  ),
  spoolMaxBytes: size('SPOOL_MAX_BYTES', 'Disk space of SPOOL_DIR; beyond it the oldest goes. 0 keeps nothing there.', {
    fallback: 4 * GiB,
    min: 0,
    max: 1024 * GiB,
  }),
  spoolMaxAgeMs: duration('SPOOL_MAX_AGE', 'How long a batch or a dead letter stays in SPOOL_DIR.', {
    fallback: 7 * DAY_MS,
    plainUnit: 's',
    min: SECOND_MS,
    max: 365 * DAY_MS,
  }),
  embeddedPort: integer('EMBEDDED_PORT', 'Loopback port of the embedded backend; 0 takes any free one.', {
    fallback: 4319,
    min: 0,
    max: 65_535,
  }),
  console: flag('CONSOLE', 'Serve the console, and the embedded backend’s queries by the rule of the deployment API.', {
    fallback: false,
    fallbackText: 'false; true in `dev`',
  }),
  deploymentApi: choice('DEPLOYMENT_API', 'Whether the deployment API is served.', ['on', 'off'], { fallback: 'on' }),
  deploymentConfig: text('DEPLOYMENT_CONFIG', 'Configuration file that names the graphs to serve.', {
    fallback: () => (existsSync(USUAL_DEPLOYMENT_CONFIG) ? USUAL_DEPLOYMENT_CONFIG : null),
    fallbackText: `${USUAL_DEPLOYMENT_CONFIG} where there is one; the examples in \`dev\``,
    allowed: 'path of a `langgraph.json`',
  }),
  deploymentPort: optionalInteger('DEPLOYMENT_PORT', 'Port of its own for the deployment API; 0 takes any free one.', {
    fallback: null,
    fallbackText: 'the proxy’s port',
    min: 0,
    max: 65_535,
  }),
  deploymentApiKeys: list('DEPLOYMENT_API_KEYS', 'Keys, one of which every request to the deployment API must bring.', {
    fallback: [],
    fallbackText: 'none: only this machine is served',
    secret: true,
    allowed: 'visible ASCII, separated by commas',
    pattern: /^[\x21-\x2b\x2d-\x7e]{1,512}$/,
  }),
  deploymentAuth: choice('DEPLOYMENT_AUTH', '`none` opens the deployment API to everyone.', ['keys', 'none'], {
    fallback: 'keys',
  }),
  deploymentTracing: flag('DEPLOYMENT_TRACING', 'Send the traces of graph runs through this proxy.', {
    fallback: true,
  }),
  databaseUrl: text('DATABASE_URL', 'PostgreSQL database of the deployment API.', {
    fallback: null,
    fallbackText: 'SQLite in DATA_DIR',
    secret: true,
    allowed: '`postgres://user:password@host:port/database`',
    pattern: /^postgres(ql)?:\/\/./,
  }),
  graphThreads: integer('GRAPH_THREADS', 'Threads that run graphs.', {
    fallback: ({ coreCount }) => clamp(coreCount, 1, 4),
    fallbackText: 'one a core, 1 to 4',
    min: 1,
    max: 64,
  }),
  runsPerThread: integer('RUNS_PER_THREAD', 'Runs at a time in each of those threads.', {
    fallback: 10,
    aliases: ['N_JOBS_PER_WORKER'],
    min: 1,
    max: 1000,
  }),
  runTimeoutMs: duration('RUN_TIMEOUT', 'Longest time for one attempt at a run.', {
    fallback: HOUR_MS,
    aliases: ['BG_JOB_TIMEOUT_SECS'],
    plainUnit: 's',
    min: SECOND_MS,
    max: 7 * DAY_MS,
  }),
  webhookAllowPrivate: flag('WEBHOOK_ALLOW_PRIVATE', 'Let webhooks go to loopback, private and link-local addresses.', {
    fallback: false,
    fallbackText: 'false; true in `dev`',
  }),
  webhookSecrets: list('WEBHOOK_SECRETS', 'Secrets that sign webhooks, as Standard Webhooks have them.', {
    fallback: [],
    fallbackText: 'none: not signed',
    secret: true,
    allowed: '`whsec_` and 24 to 64 bytes in base64, separated by commas',
    pattern: /^[\x21-\x7e]+$/,
  }),
  metricsPort: optionalInteger('METRICS_PORT', 'Port of its own for `/metrics`, open to all; 0 takes any free one.', {
    fallback: null,
    fallbackText: 'the proxy’s port',
    min: 0,
    max: 65_535,
  }),
  shutdownDeadlineMs: duration(
    'SHUTDOWN_DEADLINE_MS',
    'Time to deliver what is held after SIGTERM or SIGINT. The default stays below the 10 s after which `docker stop` kills.',
    { fallback: 9 * SECOND_MS, plainUnit: 'ms', min: 0, max: HOUR_MS },
  ),
  logLevel: choice('LOG_LEVEL', 'Least severe log lines written.', ['debug', 'info', 'warn', 'error', 'silent'], {
    fallback: 'info',
  }),
} satisfies Record<string, AnyVariable>;

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- each variable has its own type of value
type AnyVariable = Variable<any>;
type ValueOf<V> = V extends Variable<infer T> ? T : never;

/** The operator's wishes, checked. Frozen. */
export type Config = { readonly [K in keyof typeof variables]: ValueOf<(typeof variables)[K]> };

export interface Configuration {
  readonly config: Config;
  readonly effective: readonly EffectiveVariable[];
  /** Not wrong, but probably not meant. */
  readonly warnings: readonly string[];
}

/** Everything that is wrong, at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}:`);
    this.problems = problems;
  }
}

export function readConfig(environment: Environment, machine: Machine): Configuration {
  const problems: string[] = [];
  const warnings: string[] = [];
  const effective: EffectiveVariable[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, variable] of Object.entries(variables) as [string, AnyVariable][]) {
    const source = sourceOf(variable, environment, warnings);
    const written = source === null ? '' : (environment[source]?.trim() ?? '');
    const parsed = source === null ? { value: variable.fallback(machine) as unknown } : variable.parse(written);
    if ('problem' in parsed) {
      const shown = variable.secret ? '' : `, not ${JSON.stringify(written)}`;
      problems.push(`${source} ${parsed.problem}${shown}`);
      values[key] = variable.fallback(machine);
      continue;
    }
    values[key] = parsed.value;
    const shown = variable.show(parsed.value) || variable.fallbackText;
    const masked = variable.secret && source !== null ? `******** (${written.length} characters)` : shown;
    effective.push({ name: variable.name, shown: masked, source: source ?? 'default', meaning: variable.meaning });
  }
  const config = Object.freeze(values) as unknown as Config;
  problems.push(...crossChecks(config));
  warnings.push(...lookAlikes(environment));
  if (problems.length > 0) throw new ConfigError(problems);
  for (const words of [config.corsAllowOrigins, config.deploymentApiKeys, config.webhookSecrets]) Object.freeze(words);
  return { config, effective, warnings };
}

/** What must not leave the process: values of secret variables, and the password alone where one is in a URL. */
export function secretsOf(config: Config): string[] {
  const values = Object.entries(variables as Record<string, AnyVariable>)
    .filter(([, { secret }]) => secret)
    .flatMap(([key]) => (config as Readonly<Record<string, unknown>>)[key] ?? []) as string[];
  const password = URL.parse(config.databaseUrl ?? '')?.password ?? '';
  // As written in the URL, and as the database's client has it.
  const passwords = password === '' ? [] : [password, decoded(password)];
  return [...values, ...passwords].filter((secret) => secret !== DEVELOPMENT_KEY);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // no escapes: it is the password as it stands
  }
}

/** The variable or alias that is set (an empty value is none); the name itself wins. */
function sourceOf(variable: AnyVariable, environment: Environment, warnings: string[]): string | null {
  const set = [variable.name, ...variable.aliases].filter((name) => (environment[name]?.trim() ?? '') !== '');
  const [source, ...others] = set;
  for (const other of others) {
    if (environment[other]?.trim() !== environment[source ?? '']?.trim()) {
      warnings.push(`${source} and ${other} differ; ${source} is used`);
    }
  }
  return source ?? null;
}

function crossChecks(config: Config): string[] {
  const problems: string[] = [];
  if ((config.tlsCertFile === null) !== (config.tlsKeyFile === null)) {
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE must be set together');
  }
  for (const key of ['tlsCertFile', 'tlsKeyFile', 'converterModule', 'deploymentConfig'] as const) {
    const path = config[key];
    if (path !== null && !existsSync(resolve(path))) {
      problems.push(`${variables[key].name}: there is no file ${JSON.stringify(path)}`);
    }
  }
  if (config.durableAck && config.journalMaxBytes < 2 * config.maxBodyBytes) {
    problems.push('JOURNAL_MAX_BYTES must be at least twice MAX_BODY_BYTES');
  }
  if (config.maxBufferBytes > config.heldMaxBytes) {
    problems.push('MAX_BUFFER_BYTES must not exceed HELD_MAX_BYTES: a full batch has to fit among what is held');
  }
  if (config.spoolMaxBytes > 0 && config.spoolMaxBytes < config.shipShards * MIN_SPOOL_BYTES) {
    problems.push('SPOOL_MAX_BYTES must be 0, or at least 1MiB for each of SHIP_SHARDS');
  }
  if (config.decodeThreads * config.shipShards * config.ringBytes > 8 * GiB) {
    problems.push('DECODE_THREADS × SHIP_SHARDS × RING_BYTES must not exceed 8GiB of shared memory');
  }
  if (pointsAtItself(config)) {
    problems.push(`SERVICE_ENDPOINT ${config.endpoint} is this proxy itself`);
  }
  const ports = [
    ['HTTP_PORT', config.httpPort],
    ['EMBEDDED_PORT', config.endpoint === 'embedded' ? config.embeddedPort : null],
    ['DEPLOYMENT_PORT', config.deploymentPort],
    ['METRICS_PORT', config.metricsPort],
  ] as const;
  for (const [index, [name, port]] of ports.entries()) {
    const other = ports.slice(0, index).find(([, taken]) => taken === port);
    if (other !== undefined && port !== null && port !== 0) problems.push(`${name} and ${other[0]} must differ`);
  }
  if (config.webhookSecrets.some((secret) => signingKey(secret) === null)) {
    problems.push('WEBHOOK_SECRETS must be whsec_ and 24 to 64 bytes in base64, separated by commas');
  }
  if (config.deploymentAuth === 'none' && config.deploymentApiKeys.length > 0) {
    problems.push('DEPLOYMENT_AUTH=none would make DEPLOYMENT_API_KEYS useless: set one of them');
  }
  return problems;
}

function pointsAtItself(config: Config): boolean {
  if (config.endpoint === 'embedded' || config.httpPort === 0) return false;
  const { hostname, port } = new URL(config.endpoint);
  const loopback =
    hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.') || hostname === '0.0.0.0';
  return loopback && Number(port) === config.httpPort;
}

/** Variables that are one or two letters away from ours, or wear our prefix: a typing error that would go unnoticed. */
function lookAlikes(environment: Environment): string[] {
  const known = (Object.values(variables) as AnyVariable[]).flatMap(({ name, aliases }) => [name, ...aliases]);
  const warnings: string[] = [];
  for (const name of Object.keys(environment)) {
    if (known.includes(name) || name.length < 6) continue;
    const near = known.find((candidate) => candidate.length >= 6 && within2Edits(name, candidate));
    if (near !== undefined) warnings.push(`${name} is not a variable of the proxy; is ${near} meant?`);
    else if (/^SERVICE_[A-Z_]+$/.test(name)) warnings.push(`${name} is not a variable of the proxy`);
  }
  return warnings;
}

/** Edit distance at most two, by the usual table. */
function within2Edits(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 2) return false;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return (row[b.length] ?? 0) <= 2;
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}

export function processEnvironment(): Environment {
  return process.env;
}

/** `dev`: whatever a shell has set for the hosted backend, development stays on this machine. */
export function developmentEnvironment(environment: Environment): Environment {
  const local: Record<string, string | undefined> = { ...environment };
  for (const variable of [variables.endpoint, variables.apiKey]) {
    for (const name of [variable.name, ...variable.aliases]) delete local[name];
  }
  return {
    // The banner says what there is to say.
    [variables.logLevel.name]: 'warn',
    // Receivers under development are on this machine.
    [variables.webhookAllowPrivate.name]: 'true',
    [variables.console.name]: 'true',
    ...(existsSync(USUAL_DEPLOYMENT_CONFIG) ? {} : { [variables.deploymentConfig.name]: EXAMPLE_DEPLOYMENT_CONFIG }),
    ...local,
    [variables.endpoint.name]: 'embedded',
    [variables.apiKey.name]: DEVELOPMENT_KEY,
  };
}

/** Must run before the HTTP server library is loaded, which reads this once. */
export function allowLongHeads(): void {
  process.env[HEAD_LIMIT.name] ??= HEAD_LIMIT.value;
}
