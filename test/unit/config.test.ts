import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkText, configErrorText, helpText, readCommand } from '../../src/cli.ts';
import { ConfigError, developmentEnvironment, readConfig, variables, type Environment } from '../../src/config.ts';
import { GiB, KiB, MiB } from '../../src/core/units.ts';

const machine = { coreCount: 2 };

function read(environment: Environment = {}) {
  return readConfig(environment, machine);
}

function problemsOf(environment: Environment): readonly string[] {
  try {
    read(environment);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems;
  }
  return [];
}

test('an empty environment gives the published defaults', () => {
  const { config, warnings } = read();
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    { ...config, dataDir: null },
    {
      httpPort: 4318,
      host: null,
      tlsCertFile: null,
      tlsKeyFile: null,
      corsAllowOrigins: [],
      endpoint: 'https://api.smith.langchain.com',
      apiKey: null,
      project: null,
      batchSize: 100,
      flushIntervalMs: 1000,
      maxBufferBytes: 10_485_760,
      maxBodyBytes: 209_715_200,
      maxInflightBytes: 64 * MiB,
      maxRetries: 3,
      retryBackoffMs: 100,
      uploadConcurrency: 8,
      uploadTimeoutMs: 30_000,
      heldMaxBytes: 32 * MiB,
      zstdLevel: 1,
      spanTtlMs: 300_000,
      parkMaxBytes: 64 * MiB,
      filterNonGenAi: false,
      genericOtel: false,
      rootRunId: 'trace',
      converterModule: null,
      durableAck: false,
      journalDir: null,
      journalMaxBytes: GiB,
      decodeThreads: 1,
      shipShards: 1,
      ringBytes: 8 * MiB,
      dataDir: null,
      spoolDir: null,
      spoolMaxBytes: 4096 * MiB,
      spoolMaxAgeMs: 604_800_000,
      embeddedPort: 4319,
      deploymentApi: 'on',
      deploymentConfig: null,
      deploymentPort: null,
      deploymentApiKeys: [],
      deploymentAuth: 'keys',
      deploymentTracing: true,
      databaseUrl: null,
      graphThreads: 2,
      runsPerThread: 10,
      runTimeoutMs: 3_600_000,
      webhookAllowPrivate: false,
      console: false,
      webhookSecrets: [],
      metricsPort: null,
      shutdownDeadlineMs: 9000,
      logLevel: 'info',
    },
  );
});

test('the configuration is frozen, lists included', () => {
  const { config } = read({ CORS_ALLOW_ORIGINS: 'https://a.example' });
  assert.ok(Object.isFrozen(config));
  assert.ok(Object.isFrozen(config.corsAllowOrigins));
});

test('threads follow the cores of the machine', () => {
  const threads = [1, 2, 4, 8, 64].map((coreCount) => {
    const { config } = readConfig({}, { coreCount });
    return [config.decodeThreads, config.shipShards];
  });
  assert.deepEqual(threads, [
    [1, 1],
    [1, 1],
    [2, 1],
    [4, 2],
    [16, 8],
  ]);
});

test('durations and sizes may carry units; plain numbers count in the unit that the name or the table says', () => {
  const { config } = read({
    SPAN_TTL: '90',
    FLUSH_INTERVAL_MS: '2s',
    RETRY_BACKOFF_MS: '250',
    SHUTDOWN_DEADLINE_MS: '1.5s',
    MAX_BUFFER_BYTES: '2MiB',
    MAX_BODY_BYTES: '2000',
    MAX_INFLIGHT_BYTES: '100MB',
    PARK_MAX_BYTES: '1Gi',
    RING_BYTES: '65536',
  });
  assert.deepEqual(
    [config.spanTtlMs, config.flushIntervalMs, config.retryBackoffMs, config.shutdownDeadlineMs],
    [90_000, 2000, 250, 1500],
  );
  assert.deepEqual(
    [config.maxBufferBytes, config.maxInflightBytes, config.parkMaxBytes, config.ringBytes],
    [2 * MiB, 100_000_000, GiB, 64 * KiB],
  );
});

test('every problem is reported at once, with what is allowed and what was written', () => {
  const problems = problemsOf({
    HTTP_PORT: '70000',
    BATCH_SIZE: '0',
    FLUSH_INTERVAL_MS: 'soon',
    MAX_BODY_BYTES: '-1',
    RING_BYTES: '3MiB',
    FILTER_NON_GENAI: 'maybe',
    ROOT_RUN_ID: 'both',
    SERVICE_ENDPOINT: 'ftp://backend',
    TLS_CERT_FILE: '/no/such/file',
    CORS_ALLOW_ORIGINS: 'app.example',
  });
  const expected = [
    /^HTTP_PORT must be an integer, 0 to 65535, not "70000"$/,
    /^TLS_CERT_FILE: there is no file "\/no\/such\/file"$/,
    /^TLS_CERT_FILE and TLS_KEY_FILE must be set together$/,
    /^CORS_ALLOW_ORIGINS must be origins such as/,
    /^SERVICE_ENDPOINT must be an http\(s\) URL .*, not "ftp:\/\/backend"$/,
    /^BATCH_SIZE must be an integer, 1 to 100000, not "0"$/,
    /^FLUSH_INTERVAL_MS must be milliseconds \(also 500ms, 30s, 5m\), 1ms to 10m, not "soon"$/,
    /^MAX_BODY_BYTES must be bytes .*, 1KiB to 1GiB, not "-1"$/,
    /^RING_BYTES must be a power of two, bytes .*, 64KiB to 1GiB, not "3MiB"$/,
    /^FILTER_NON_GENAI must be true or false, not "maybe"$/,
    /^ROOT_RUN_ID must be one of trace, span, not "both"$/,
  ];
  assert.equal(problems.length, expected.length, problems.join('\n'));
  for (const pattern of expected)
    assert.ok(
      problems.some((problem) => pattern.test(problem)),
      `${pattern}\n${problems.join('\n')}`,
    );
  assert.match(configErrorText(new ConfigError(problems)), /^the configuration has 11 problems:\n {2}- /);
});

test('a wrong key is never repeated in the message', () => {
  const problems = problemsOf({ SERVICE_API_KEY: 'two words' });
  assert.deepEqual(problems, ['SERVICE_API_KEY must be visible ASCII, at most 512 characters']);
});

test('settings that contradict each other are problems', () => {
  assert.deepEqual(problemsOf({ MAX_BUFFER_BYTES: '200MiB' }), [
    'MAX_BUFFER_BYTES must not exceed HELD_MAX_BYTES: a full batch has to fit among what is held',
  ]);
  assert.deepEqual(problemsOf({ DURABLE_ACK: 'true', JOURNAL_MAX_BYTES: '300MiB' }), [
    'JOURNAL_MAX_BYTES must be at least twice MAX_BODY_BYTES',
  ]);
  assert.deepEqual(problemsOf({ JOURNAL_MAX_BYTES: '300MiB' }), []);
  assert.match(problemsOf({ RING_BYTES: '1GiB', DECODE_THREADS: '4', SHIP_SHARDS: '4' })[0] ?? '', /8GiB/);
  assert.deepEqual(problemsOf({ SERVICE_ENDPOINT: 'embedded', EMBEDDED_PORT: '4318' }), [
    'EMBEDDED_PORT and HTTP_PORT must differ',
  ]);
});

test('an endpoint that is the proxy itself is a problem, another port or host is not', () => {
  for (const endpoint of ['http://localhost:4318', 'http://127.0.0.1:4318/v1', 'http://[::1]:4318']) {
    assert.match(problemsOf({ SERVICE_ENDPOINT: endpoint })[0] ?? '', /is this proxy itself$/, endpoint);
  }
  assert.deepEqual(problemsOf({ SERVICE_ENDPOINT: 'http://localhost:1984' }), []);
  assert.deepEqual(problemsOf({ SERVICE_ENDPOINT: 'http://backend:4318' }), []);
});

test('endpoints lose the slash at their end; credentials and queries are not accepted', () => {
  assert.equal(read({ SERVICE_ENDPOINT: 'https://host/api/v1/' }).config.endpoint, 'https://host/api/v1');
  assert.equal(read({ SERVICE_ENDPOINT: 'EMBEDDED' }).config.endpoint, 'embedded');
  for (const endpoint of ['https://user:secret@host', 'https://host?x=1', 'host:80', 'https://host#x']) {
    assert.equal(problemsOf({ SERVICE_ENDPOINT: endpoint }).length, 1, endpoint);
  }
});

test('the well-known aliases work; the own name wins and the difference is told, without keys', () => {
  const aliased = read({ LANGSMITH_ENDPOINT: 'https://ls', LANGCHAIN_API_KEY: 'lc', LANGSMITH_PROJECT: 'p' });
  assert.deepEqual([aliased.config.endpoint, aliased.config.apiKey, aliased.config.project], ['https://ls', 'lc', 'p']);
  assert.deepEqual(aliased.warnings, []);
  const both = read({ SERVICE_API_KEY: 'own', LANGSMITH_API_KEY: 'other', LANGCHAIN_API_KEY: 'own' });
  assert.equal(both.config.apiKey, 'own');
  assert.deepEqual(both.warnings, ['SERVICE_API_KEY and LANGSMITH_API_KEY differ; SERVICE_API_KEY is used']);
});

test('empty values count as not set', () => {
  const { config } = read({ SERVICE_API_KEY: '', LANGSMITH_API_KEY: ' ', SERVICE_PROJECT: '  ', HTTP_PORT: '' });
  assert.deepEqual([config.apiKey, config.project, config.httpPort], [null, null, 4318]);
});

test('names that are nearly ours are pointed out, others are left alone', () => {
  const { warnings } = read({
    BATCHSIZE: '5',
    SERVICE_APIKEY: 'k',
    SERVICE_TIER: 'gold',
    LANGSMITH_TRACING: 'true',
    PATH: '/bin',
    HOSTNAME: 'box',
    HTTP_PROXY: 'http://proxy',
    NODE_ENV: 'production',
  });
  assert.deepEqual(warnings, [
    'BATCHSIZE is not a variable of the proxy; is BATCH_SIZE meant?',
    'SERVICE_APIKEY is not a variable of the proxy; is SERVICE_API_KEY meant?',
    'SERVICE_TIER is not a variable of the proxy',
  ]);
});

test('the check shows every value with its source, and masks the key', () => {
  const shown = checkText(read({ LANGSMITH_API_KEY: 'lsv2_very_secret', BATCH_SIZE: '7', BATCHSIZE: '8' }));
  assert.match(shown, /^BATCH_SIZE +7 +from BATCH_SIZE$/m);
  assert.match(shown, /^SERVICE_API_KEY +\*{8} \(16 characters\) +from LANGSMITH_API_KEY$/m);
  assert.match(shown, /^SERVICE_PROJECT +default +default$/m);
  assert.match(shown, /^SPAN_TTL +5m +default$/m);
  assert.match(shown, /^warning: BATCHSIZE/m);
  assert.ok(!shown.includes('very_secret'));
  for (const { name } of Object.values(variables)) assert.ok(shown.includes(name), name);
});

test('help lists every variable with what is allowed and its default', () => {
  const help = helpText();
  for (const { name, aliases } of Object.values(variables)) {
    for (const each of [name, ...aliases]) assert.ok(help.includes(each), each);
  }
  assert.match(help, /integer, 0 to 65535; default: 4318/);
});

test('development stays on this machine, whatever keys and endpoints the shell has', () => {
  const { config, warnings } = read(
    developmentEnvironment({
      LANGSMITH_API_KEY: 'real',
      SERVICE_ENDPOINT: 'https://real',
      LANGCHAIN_ENDPOINT: 'https://real',
      HTTP_PORT: '5000',
    }),
  );
  assert.deepEqual([config.endpoint, config.httpPort, warnings], ['embedded', 5000, []]);
  assert.ok(config.apiKey !== null && config.apiKey !== 'real');
});

test('words of the command line', () => {
  assert.deepEqual(readCommand([]), { kind: 'serve' });
  assert.deepEqual(readCommand(['dev']), { kind: 'dev' });
  assert.deepEqual(readCommand(['dev', '--check']), { kind: 'check', development: true });
  assert.deepEqual(readCommand(['--check']), { kind: 'check', development: false });
  assert.deepEqual(readCommand(['--check', '-h']), { kind: 'help' });
  assert.deepEqual(readCommand(['-v']), { kind: 'version' });
  assert.equal(readCommand(['--port=1']).kind, 'wrong');
});

test('the converter module must exist', () => {
  const own = fileURLToPath(import.meta.url);
  assert.equal(read({ CONVERTER_MODULE: own }).config.converterModule, own);
  assert.equal(problemsOf({ CONVERTER_MODULE: './no-such-converter.ts' }).length, 1);
});
