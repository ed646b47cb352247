/** The command line: what was asked for, and the texts that answer. Nothing here starts or stops anything. */
import { readFileSync } from 'node:fs';
import { variables, type Configuration, type ConfigError } from './config.ts';
import { memoryText } from './memory.ts';
import type { Variable } from './variables.ts';

export type Command =
  | { readonly kind: 'serve' }
  | { readonly kind: 'dev' }
  | { readonly kind: 'help' }
  | { readonly kind: 'version' }
  | { readonly kind: 'check'; readonly development: boolean }
  | { readonly kind: 'spool'; readonly words: readonly string[] }
  | { readonly kind: 'wrong'; readonly message: string };

export const USAGE_EXIT_CODE = 2;

export function readCommand(words: readonly string[]): Command {
  if (words[0] === 'spool') return { kind: 'spool', words: words.slice(1) };
  let development = false;
  let check = false;
  for (const word of words) {
    switch (word) {
      case 'dev':
        development = true;
        break;
      case '--check':
        check = true;
        break;
      case '--help':
      case '-h':
        return { kind: 'help' };
      case '--version':
      case '-v':
        return { kind: 'version' };
      default:
        return { kind: 'wrong', message: `unknown argument ${JSON.stringify(word)}; --help shows what there is` };
    }
  }
  if (check) return { kind: 'check', development };
  return development ? { kind: 'dev' } : { kind: 'serve' };
}

export function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

export function helpText(): string {
  const names = variableRows().map((row) => row.name.length);
  const width = Math.max(...names) + 2;
  const indent = ' '.repeat(width + 2);
  return [
    `Collector Proxy ${version()}: takes OpenTelemetry spans over OTLP/HTTP and uploads them as runs, in few large batches.`,
    '',
    'Usage: npm start [-- FLAG]     production; everything is configured by environment variables',
    '       npm run dev             with the embedded backend; needs no key and no configuration',
    '',
    '       npm run spool -- …      what waits on disk and what was refused: list, show, resend, purge; see --help there',
    '',
    'Flags: --help, -h     this text',
    '       --version, -v  the version',
    '       --check        print the effective configuration, secrets masked, and exit',
    '',
    'Exit codes: 0 stopped with everything delivered or in the spool, 1 could not start or failed, 2 wrong arguments,',
    '3 stopped with spans lost, 78 wrong configuration.',
    '',
    'Environment variables:',
    ...variableRows().flatMap((row) => [
      `  ${row.name.padEnd(width)}${row.meaning}`,
      `${indent}${row.allowed.replaceAll('`', '')}; default: ${row.fallback}`,
      ...(row.aliases.length === 0 ? [] : [`${indent}also: ${row.aliases.join(', ')}`]),
    ]),
    '',
  ].join('\n');
}

export interface VariableRow {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly meaning: string;
  readonly allowed: string;
  readonly fallback: string;
}

export function variableRows(): VariableRow[] {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each variable has its own type of value
  return (Object.values(variables) as Variable<any>[]).map((variable) => ({
    name: variable.name,
    aliases: variable.aliases,
    meaning: variable.meaning,
    allowed: variable.allowed,
    fallback: variable.fallbackText,
  }));
}

/** The table in the README; a test compares the two. */
export function variableTable(): string {
  const rows = variableRows().map(({ name, aliases, meaning, allowed, fallback }) => {
    const alias = aliases.length === 0 ? '' : ` Also: ${aliases.map((other) => `\`${other}\``).join(', ')}.`;
    return `| \`${name}\` | ${meaning}${alias} | ${allowed} | ${fallback} |`;
  });
  return ['| Variable | Meaning | Allowed | Default |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

export function checkText(configuration: Configuration): string {
  const width = Math.max(...configuration.effective.map(({ name }) => name.length)) + 2;
  const valueWidth = Math.max(...configuration.effective.map(({ shown }) => shown.length)) + 2;
  return [
    ...configuration.effective.map(
      ({ name, shown, source }) =>
        `${name.padEnd(width)}${shown.padEnd(valueWidth)}${source === 'default' ? source : `from ${source}`}`,
    ),
    ...configuration.warnings.map((warning) => `warning: ${warning}`),
    '',
    memoryText(configuration.config),
  ].join('\n');
}

export function configErrorText(error: ConfigError): string {
  return [error.message, ...error.problems.map((problem) => `  - ${problem}`), ''].join('\n');
}
