/**
 * The program: reads flags and environment, starts the service, turns signals into a stop, and is the only place that
 * ends the process. First signal: take no more, deliver what is held within SHUTDOWN_DEADLINE_MS, exit 0 when all of it
 * was delivered or is in the spool, 3 when not. Second signal: at once.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { bannerText } from './banner.ts';
import { checkText, configErrorText, helpText, readCommand, USAGE_EXIT_CODE, version } from './cli.ts';
import {
  allowLongHeads,
  CONFIG_EXIT_CODE,
  ConfigError,
  developmentEnvironment,
  processEnvironment,
  readConfig,
  secretsOf,
  type Configuration,
} from './config.ts';
import { createLog } from './observe/log.ts';
import { createService, type Account } from './service.ts';
import { spoolFolder } from './spool.ts';
import { spoolCommand } from './spoolcommand.ts';

const STANDARD_OUTPUT = 1;
const FAILED_EXIT_CODE = 1;
const UNDELIVERED_EXIT_CODE = 3;
/**
 * A signal this soon after the first is the same one, come twice: Ctrl-C under npm reaches us from the terminal and from
 * npm, and `timeout` signals its child and then its group.
 */
const SIGNAL_ECHO_MS = 500;

function write(text: string | Uint8Array): void {
  process.stdout.write(text);
}

function complain(text: string): void {
  process.stderr.write(`${text}\n`);
}

function main(): void {
  const command = readCommand(process.argv.slice(2));
  switch (command.kind) {
    case 'wrong':
      complain(command.message);
      process.exitCode = USAGE_EXIT_CODE;
      return;
    case 'help':
      return write(helpText());
    case 'version':
      return write(`${version()}\n`);
    case 'check': {
      const configuration = configure(command.development);
      if (configuration !== null) write(checkText(configuration));
      return;
    }
    case 'spool': {
      const folder = (): string | null => {
        const configuration = configure(false);
        return configuration === null ? null : spoolFolder(configuration.config);
      };
      void spoolCommand(command.words, folder, { write, complain }).then((exitCode) => {
        process.exitCode ??= exitCode;
      });
      return;
    }
    case 'serve':
    case 'dev': {
      const development = command.kind === 'dev';
      const configuration = configure(development);
      if (configuration !== null) serve(configuration, development);
      return;
    }
  }
}

/** Null, and all problems told, when the configuration is wrong. */
function configure(development: boolean): Configuration | null {
  const environment = processEnvironment();
  try {
    return readConfig(development ? developmentEnvironment(environment) : environment, {
      coreCount: availableParallelism(),
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(configErrorText(error));
    process.exitCode = CONFIG_EXIT_CODE;
    return null;
  }
}

function serve({ config, effective, warnings }: Configuration, development: boolean): void {
  allowLongHeads();
  const log = createLog(config.logLevel, STANDARD_OUTPUT, secretsOf(config));
  for (const warning of warnings) log.warn({}, warning);
  const service = createService(config, log, {
    watchSources: development,
    effective: { variables: effective, warnings },
  });
  /** Null while running. */
  let ending: Promise<void> | null = null;
  let firstSignalMs = Number.NEGATIVE_INFINITY;

  let finishing: Promise<void> | null = null;
  /** Whoever is first says how it ends. */
  const finish = (exitCode: number): Promise<void> => (finishing ??= log.flush().finally(() => process.exit(exitCode)));
  /** Never rejects. */
  const end = async (reason: string, failed: boolean): Promise<void> => {
    log.info({ reason, deadlineMs: config.shutdownDeadlineMs, ...service.account() }, 'stopping');
    try {
      const account = await service.stop(config.shutdownDeadlineMs);
      if (isComplete(account) && account.spooledCount === 0)
        log.info(
          { reason, ...account },
          account.droppedCount === 0
            ? 'stopped, everything delivered'
            : 'stopped, everything delivered but what was dropped',
        );
      else if (isComplete(account))
        log.warn({ reason, ...account }, 'stopped, what was not delivered waits in the spool');
      else log.error({ reason, ...account }, 'stopped, not everything was delivered');
      await finish(failed ? FAILED_EXIT_CODE : exitCodeOf(account));
    } catch (error) {
      log.error({ err: error, reason, ...service.account() }, 'stopping failed');
      await finish(FAILED_EXIT_CODE);
    }
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    if (ending === null) {
      firstSignalMs = performance.now();
      ending = end(signal, false);
      return;
    }
    if (performance.now() - firstSignalMs < SIGNAL_ECHO_MS) return;
    log.error({ reason: `second ${signal}`, ...service.account() }, 'stopped at once');
    void finish(exitCodeOf(service.account()));
  };
  /** A defect that nobody caught: what has been taken is still worth delivering. */
  const onDefect = (error: unknown): void => {
    log.error({ err: error }, 'unexpected failure');
    ending ??= end('failure', true);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  // Configuration is read at the start alone. By default this signal would end the process with all that it holds.
  process.on('SIGHUP', onSignal);
  process.on('uncaughtException', onDefect);
  process.on('unhandledRejection', onDefect);

  service.start().then(
    () => {
      const { port, endpoint, deployment, metricsPort } = service;
      log.info(
        {
          port,
          endpoint,
          version: version(),
          ...(metricsPort !== null && { metricsPort }),
          deployment: deployment && { port: deployment.port, graphs: deployment.graphIds },
        },
        'ready',
      );
      if (!development) return;
      write(
        bannerText(
          {
            version: version(),
            port: service.port,
            secure: config.tlsCertFile !== null,
            backendUrl: service.endpoint,
            dataDir: join(config.dataDir ?? '.', 'runs.sqlite'),
            deployment: service.deployment,
            console: config.console,
            colours: process.stdout.isTTY,
          },
          Date.now(),
        ),
      );
    },
    async (error: unknown) => {
      complain(`cannot start: ${error instanceof Error ? error.message : String(error)}`);
      await service.stop(0);
      await finish(FAILED_EXIT_CODE);
    },
  );
}

function isComplete(account: Account): boolean {
  return account.heldCount === 0 && account.lostCount === 0;
}

function exitCodeOf(account: Account): number {
  return isComplete(account) ? 0 : UNDELIVERED_EXIT_CODE;
}

main();
