/** Kinds of environment variables: how each is written, checked, shown and described. `config.ts` has the table of them. */
import { DAY_MS, GiB, HOUR_MS, KiB, MiB, MINUTE_MS, SECOND_MS } from './core/units.ts';

/** What defaults may depend on. */
export interface Machine {
  readonly coreCount: number;
}

export type Parsed<T> = { readonly value: T } | { readonly problem: string };

export interface Variable<T> {
  readonly name: string;
  /** Other spellings, in order of preference; the name itself wins over them. */
  readonly aliases: readonly string[];
  /** One sentence for people. */
  readonly meaning: string;
  /** What may be written, for people. */
  readonly allowed: string;
  readonly secret: boolean;
  fallback(machine: Machine): T;
  /** The default for people, where it depends on the machine or is no plain value. */
  readonly fallbackText: string;
  parse(text: string): Parsed<T>;
  show(value: T): string;
}

interface Naming<T> {
  readonly aliases?: readonly string[];
  readonly secret?: boolean;
  readonly fallback: T | ((machine: Machine) => T);
  /** Needed where the fallback is a function. */
  readonly fallbackText?: string;
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

export function integer(name: string, meaning: string, naming: Naming<number> & Bounds): Variable<number> {
  const allowed = `integer, ${naming.min} to ${naming.max}`;
  return variable(name, meaning, allowed, naming, String, (text) =>
    /^\d{1,15}$/.test(text) ? within(Number(text), naming, `an ${allowed}`) : { problem: `must be an ${allowed}` },
  );
}

/** Not set: null. */
export function optionalInteger(
  name: string,
  meaning: string,
  naming: Naming<number | null> & Bounds,
): Variable<number | null> {
  const plain = integer(name, meaning, { ...naming, fallback: 0 });
  return variable(
    name,
    meaning,
    plain.allowed,
    naming,
    (value) => String(value ?? ''),
    (written) => plain.parse(written),
  );
}

/** Sizes: plain bytes, or with a unit. */
export function size(
  name: string,
  meaning: string,
  naming: Naming<number> & Bounds & { readonly powerOfTwo?: boolean },
): Variable<number> {
  const shape = naming.powerOfTwo === true ? 'power of two, bytes' : 'bytes';
  const allowed = `${shape} (also \`64KiB\`, \`10MiB\`), ${showSize(naming.min)} to ${showSize(naming.max)}`;
  return variable(name, meaning, allowed, naming, showSize, (text) => {
    const match = /^(\d{1,15}(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
    const unitBytes = sizeUnits.get((match?.[2] ?? '').toLowerCase());
    if (match === null || unitBytes === undefined) return { problem: `must be ${allowed}` };
    const value = Math.round(Number(match[1]) * unitBytes);
    if (naming.powerOfTwo === true && 2 ** Math.round(Math.log2(value)) !== value) {
      return { problem: `must be a ${allowed}` };
    }
    return within(value, naming, allowed);
  });
}

/** Durations, in milliseconds; a plain number counts in `plainUnit`. */
export function duration(
  name: string,
  meaning: string,
  naming: Naming<number> & Bounds & { readonly plainUnit: 'ms' | 's' },
): Variable<number> {
  const plain = naming.plainUnit === 'ms' ? 'milliseconds' : 'seconds';
  const allowed = `${plain} (also \`500ms\`, \`30s\`, \`5m\`), ${showDuration(naming.min)} to ${showDuration(naming.max)}`;
  const show = naming.plainUnit === 'ms' ? String : showDuration;
  return variable(name, meaning, allowed, naming, show, (text) => {
    const match = /^(\d{1,15}(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
    const unit = match?.[2] === '' ? naming.plainUnit : match?.[2]?.toLowerCase();
    const unitMs = durationUnits.get(unit ?? '');
    if (match === null || unitMs === undefined) return { problem: `must be ${allowed}` };
    return within(Math.round(Number(match[1]) * unitMs), naming, allowed);
  });
}

export function flag(name: string, meaning: string, naming: Naming<boolean>): Variable<boolean> {
  return variable(name, meaning, '`true` or `false`', naming, String, (text) => {
    const value = flagWords.get(text.toLowerCase());
    return value === undefined ? { problem: 'must be true or false' } : { value };
  });
}

export function choice<const T extends string>(
  name: string,
  meaning: string,
  choices: readonly T[],
  naming: Naming<NoInfer<T>>,
): Variable<T> {
  const allowed = choices.map((word) => `\`${word}\``).join(', ');
  return variable(name, meaning, allowed, naming, String, (text) => {
    const value = choices.find((word) => word === text.toLowerCase());
    return value === undefined ? { problem: `must be one of ${choices.join(', ')}` } : { value };
  });
}

/** Text without control characters. */
export function text(
  name: string,
  meaning: string,
  naming: Naming<string | null> & { readonly allowed?: string; readonly pattern?: RegExp },
): Variable<string | null> {
  const allowed = naming.allowed ?? 'text, at most 512 characters';
  return variable(
    name,
    meaning,
    allowed,
    naming,
    (value) => value ?? '',
    (written) => {
      const fits = written.length <= 512 && !/[\x00-\x1f\x7f]/.test(written) && (naming.pattern?.test(written) ?? true);
      return fits ? { value: written } : { problem: `must be ${allowed}` };
    },
  );
}

/** Words separated by commas. */
export function list(
  name: string,
  meaning: string,
  naming: Naming<readonly string[]> & { readonly allowed: string; readonly pattern: RegExp },
): Variable<readonly string[]> {
  return variable(
    name,
    meaning,
    naming.allowed,
    naming,
    (value) => value.join(','),
    (written) => {
      const words = written.split(',').map((word) => word.trim());
      return words.every((word) => naming.pattern.test(word))
        ? { value: words }
        : { problem: `must be ${naming.allowed}` };
    },
  );
}

/** The backend: an http(s) URL without a slash at its end, or the word `embedded`. */
export function endpoint(name: string, meaning: string, naming: Naming<string>): Variable<string> {
  const allowed = 'http(s) URL without credentials and query, or `embedded`';
  return variable(name, meaning, allowed, naming, String, (written) => {
    if (written.toLowerCase() === 'embedded') return { value: 'embedded' };
    const url = URL.parse(written);
    const fits =
      url !== null &&
      (url.protocol === 'http:' || url.protocol === 'https:') &&
      url.username === '' &&
      url.password === '' &&
      url.search === '' &&
      url.hash === '';
    return fits ? { value: url.href.replace(/\/+$/, '') } : { problem: `must be an ${allowed.replaceAll('`', '')}` };
  });
}

/** For people: the shortest exact form. */
export function showSize(bytes: number): string {
  for (const [unit, unitBytes] of [
    ['GiB', GiB],
    ['MiB', MiB],
    ['KiB', KiB],
  ] as const) {
    if (bytes >= unitBytes && bytes % unitBytes === 0) return `${bytes / unitBytes}${unit}`;
  }
  return String(bytes);
}

export function showDuration(ms: number): string {
  for (const [unit, unitMs] of [
    ['d', DAY_MS],
    ['h', HOUR_MS],
    ['m', MINUTE_MS],
    ['s', SECOND_MS],
  ] as const) {
    if (ms >= unitMs && ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  }
  return `${ms}ms`;
}

const sizeUnits = new Map([
  ['', 1],
  ['b', 1],
  ['k', KiB],
  ['ki', KiB],
  ['kib', KiB],
  ['kb', 1000],
  ['m', MiB],
  ['mi', MiB],
  ['mib', MiB],
  ['mb', 1_000_000],
  ['g', GiB],
  ['gi', GiB],
  ['gib', GiB],
  ['gb', 1_000_000_000],
]);

const durationUnits = new Map([
  ['ms', 1],
  ['s', SECOND_MS],
  ['m', MINUTE_MS],
  ['min', MINUTE_MS],
  ['h', HOUR_MS],
  ['d', DAY_MS],
]);

const flagWords = new Map([
  ['true', true],
  ['1', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['off', false],
]);

function within(value: number, { min, max }: Bounds, allowed: string): Parsed<number> {
  return value >= min && value <= max ? { value } : { problem: `must be ${allowed.replaceAll('`', '')}` };
}

function variable<T>(
  name: string,
  meaning: string,
  allowed: string,
  naming: Naming<T>,
  show: (value: T) => string,
  parse: (text: string) => Parsed<T>,
): Variable<T> {
  const { fallback } = naming;
  const fallbackOf = typeof fallback === 'function' ? (fallback as (machine: Machine) => T) : () => fallback;
  return {
    name,
    meaning,
    allowed,
    aliases: naming.aliases ?? [],
    secret: naming.secret ?? false,
    fallback: fallbackOf,
    fallbackText: naming.fallbackText ?? show(fallbackOf({ coreCount: 1 })),
    show,
    parse: (written) => {
      const parsed = parse(written);
      return 'problem' in parsed ? { problem: parsed.problem.replaceAll('`', '') } : parsed;
    },
  };
}
