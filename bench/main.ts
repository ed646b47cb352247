/** `npm run bench`: all parts, tables on the terminal, every figure as JSON on request. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { MINUTE_MS } from '../src/core/units.ts';
import { FULL_BESIDE_GRAPH, measureBesideGraph, QUICK_BESIDE_GRAPH, renderBesideGraph } from './besidegraph.ts';
import { CORPUS_NAMES, type CorpusName } from './corpus.ts';
import { FULL_DEPLOY, measureDeploy, QUICK_DEPLOY, renderDeploy } from './deploy.ts';
import { isWithinBudget, measureOutage, renderOutage } from './outage.ts';
import { renderProfiles } from './profile.ts';
import { describeMachine } from './report.ts';
import {
  FULL_SERVICE,
  isComplete,
  measureService,
  QUICK_SERVICE,
  renderService,
  SUBJECT_NAMES,
  type ServiceSettings,
} from './service.ts';
import { FULL_TRANSLATION, measureTranslation, QUICK_TRANSLATION, renderTranslation } from './translation.ts';

const USAGE = `npm run bench -- [options]

  --part 1|2|3|4        1: translation on one thread; 2: the whole service; 3: the deployment API; 4: spans beside a graph
                        that computes. All without it.
  --part outage         full load while the backend is away, --minutes N (10), then its return; ends with exit code 1
                        when memory went beyond what --check states, or a span was lost
  --quick               shorter rounds and phases, some two minutes for all parts
  --json FILE           also write machine, Node version, date and all figures
  --corpus NAME         ${CORPUS_NAMES.join(', ')}. Part 1: this one only; part 2: instead of ${FULL_SERVICE.corpus}
  --help

part 2 (ends with exit code 1 when a span was lost, came twice, or was refused for good):
  --encoding NAME       protobuf (default) or json
  --connections N       concurrent client connections (${FULL_SERVICE.connectionCount})
  --request-spans N     spans in a request (${FULL_SERVICE.spansPerRequest})
  --seconds N           length of each measured phase (${FULL_SERVICE.phaseMs / 1000})
  --set NAME=VALUE      a variable of the service's configuration; may be repeated
  --only NAME           ${SUBJECT_NAMES.join(', ')}; may be repeated
  --profile FOLDER      profile the service's threads and say which functions took the time
  --target URL --pid PID
                        measure a collector that runs already instead, from its process's figures. It must upload to
                        the sink (POST …/runs/multipart, or OTLP protobuf to …/v1/traces) at --sink-port
  --sink-port N         where the sink listens on 127.0.0.1 (any free port)
`;

const { values } = parseArgs({
  options: {
    part: { type: 'string' },
    minutes: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    corpus: { type: 'string' },
    encoding: { type: 'string' },
    connections: { type: 'string' },
    'request-spans': { type: 'string' },
    seconds: { type: 'string' },
    set: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', multiple: true },
    profile: { type: 'string' },
    target: { type: 'string' },
    pid: { type: 'string' },
    'sink-port': { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

class UsageError extends Error {}

if (values.help) console.log(USAGE);
else {
  await bench().catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  });
}

async function bench(): Promise<void> {
  const part = values.part === undefined ? null : oneOf('--part', values.part, ['1', '2', '3', '4', 'outage'] as const);
  const corpus = values.corpus === undefined ? null : oneOf('--corpus', values.corpus, CORPUS_NAMES);
  const profileFolder = values.profile === undefined ? null : newFolder(values.profile);
  const service = serviceSettings(corpus, profileFolder);
  const machine = describeMachine();
  console.log(
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, Node ${machine.node}, ${machine.date}`,
  );
  const report: Record<string, unknown> = { machine, quick: values.quick };
  if (part === 'outage') {
    const minutes = positive('--minutes', values.minutes) ?? 10;
    const result = await measureOutage(service, minutes * MINUTE_MS);
    report['outage'] = result;
    console.log(`\n${renderOutage(result)}`);
    if (!isWithinBudget(result)) process.exitCode = 1;
  }
  const isWanted = (name: typeof part): boolean => part === null || part === name;
  if (isWanted('1') && service.target === null) {
    const settings = values.quick ? QUICK_TRANSLATION : FULL_TRANSLATION;
    const results = await measureTranslation({ ...settings, corpora: corpus === null ? CORPUS_NAMES : [corpus] });
    report['translation'] = results;
    console.log(`\nPart 1: translation, one thread\n\n${renderTranslation(results)}`);
  }
  if (isWanted('2')) {
    const results = await measureService(service);
    report['service'] = { settings: service, results };
    console.log(
      `\nPart 2: whole service, corpus ${service.corpus}, ${service.encoding}, ${service.spansPerRequest} spans a request, ` +
        `${service.connectionCount} connections\n\n${renderService(results)}`,
    );
    if (results.some(({ phases }) => phases.some((phase) => !isComplete(phase)))) process.exitCode = 1;
    if (profileFolder !== null) console.log(`\n${profileFolder}\n\n${renderProfiles(profileFolder, 20)}`);
  }
  if (isWanted('3') && service.target === null) {
    const settings = values.quick ? QUICK_DEPLOY : FULL_DEPLOY;
    const results = await measureDeploy(settings);
    report['deployment'] = { settings, results };
    console.log(`\nPart 3: deployment API, a graph of one node, durable on SQLite\n\n${renderDeploy(results)}`);
  }
  if (isWanted('4') && service.target === null) {
    const settings = values.quick ? QUICK_BESIDE_GRAPH : FULL_BESIDE_GRAPH;
    const results = await measureBesideGraph(settings);
    report['besideGraph'] = { settings, results };
    console.log(`\nPart 4: spans beside a graph that computes\n\n${renderBesideGraph(results)}`);
  }
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(report, null, 2) + '\n');
}

function serviceSettings(corpus: CorpusName | null, profileFolder: string | null): ServiceSettings {
  const usual = values.quick ? QUICK_SERVICE : FULL_SERVICE;
  const { target, pid } = values;
  if ((target === undefined) !== (pid === undefined)) throw new UsageError('--target and --pid go together');
  return {
    ...usual,
    nodeArgs: profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`],
    corpus: corpus ?? usual.corpus,
    encoding:
      values.encoding === undefined ? usual.encoding : oneOf('--encoding', values.encoding, ['protobuf', 'json']),
    connectionCount: positive('--connections', values.connections) ?? usual.connectionCount,
    spansPerRequest: positive('--request-spans', values['request-spans']) ?? usual.spansPerRequest,
    phaseMs: (positive('--seconds', values.seconds) ?? usual.phaseMs / 1000) * 1000,
    environment: Object.fromEntries(values.set.map(assignment)),
    subjects: values.only?.map((name) => oneOf('--only', name, SUBJECT_NAMES)) ?? usual.subjects,
    target: target === undefined ? null : { url: target, pid: positive('--pid', pid) ?? 0 },
    sinkPort: positive('--sink-port', values['sink-port']) ?? usual.sinkPort,
  };
}

/** Profiles of earlier runs must not be summed up with this one's. */
function newFolder(parent: string): string {
  mkdirSync(parent, { recursive: true });
  return mkdtempSync(join(parent, 'run-'));
}

function assignment(text: string): [string, string] {
  const equals = text.indexOf('=');
  if (equals < 1) throw new UsageError(`--set takes NAME=VALUE, not ${text}`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}

function oneOf<T extends string>(option: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) throw new UsageError(`${option} is one of ${allowed.join(', ')}, not ${value}`);
  return found;
}

function positive(option: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!(number > 0)) throw new UsageError(`${option} takes a positive number, not ${value}`);
  return number;
}
