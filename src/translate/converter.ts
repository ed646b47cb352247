/**
 * The extension point: what a CONVERTER_MODULE sees and says, and how it is loaded. A slow, separate path beside the byte
 * translator: where no converter is configured, none of this runs.
 *
 * The module exports one synchronous function, as `default` or as `convert`:
 *
 * ```ts
 * import type { Converter } from './src/translate/converter.ts';
 * const convert: Converter = (span, run) => ({ ...run, name: `${span.scope.name}: ${run.name}` });
 * export default convert;
 * ```
 *
 * Every decode thread loads its own copy, so module state is a thread's. A module that does not load stops the start.
 */
import { createRequire } from 'node:module';
import { types } from 'node:util';
import type { RUN_TYPE_NAMES } from './span.ts';

/**
 * An attribute's value. A 64-bit integer is a number where a double holds it exactly, else a string of its digits; bytes
 * are a base64 string; NaN, infinities and unset values are absent, in arrays null. The same as in the default run.
 */
export type ConverterValue = string | number | boolean | null | readonly ConverterValue[] | ConverterAttributes;

/** Without a prototype: `__proto__` and `constructor` are keys like others. Of equal keys the last wins. */
export interface ConverterAttributes {
  readonly [key: string]: ConverterValue;
}

/** The span as its sender described it, made for one call. */
export interface ConverterSpan {
  /** 32 hexadecimal digits, lower case. */
  readonly traceId: string;
  /** 16 hexadecimal digits, lower case. */
  readonly spanId: string;
  /** Null when it names none. */
  readonly parentSpanId: string | null;
  readonly traceState: string;
  readonly name: string;
  readonly kind: 'unspecified' | 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  /** Nanoseconds since the Unix epoch; 0n when not given. */
  readonly startTimeUnixNano: bigint;
  /** Nanoseconds since the Unix epoch; 0n when it has not ended. */
  readonly endTimeUnixNano: bigint;
  readonly attributes: ConverterAttributes;
  readonly events: readonly {
    readonly name: string;
    readonly timeUnixNano: bigint;
    readonly attributes: ConverterAttributes;
  }[];
  readonly links: readonly {
    readonly traceId: string;
    readonly spanId: string;
    readonly traceState: string;
    readonly attributes: ConverterAttributes;
  }[];
  readonly status: { readonly code: 'unset' | 'ok' | 'error'; readonly message: string };
  readonly resource: { readonly attributes: ConverterAttributes };
  readonly scope: { readonly name: string; readonly version: string; readonly attributes: ConverterAttributes };
  /** From the request's header, else SERVICE_PROJECT; null when neither says. */
  readonly project: string | null;
}

/** A JSON object. In what is handed in, an integer that a double does not hold exactly is a bigint; it may be one in what is returned. */
export type ConverterJson = Record<string, unknown>;

/**
 * The run: handed in as the default conversion made it, to be changed in place or replaced. A member that is missing,
 * undefined or null is not sent. Ids, times, parent and order are not here: they follow from the span's place in its
 * trace (the attributes `langsmith.span.id` and its like steer them). A member that is not listed makes the result
 * invalid.
 */
export interface ConverterRun {
  /** Not empty. */
  name: string;
  run_type: (typeof RUN_TYPE_NAMES)[number];
  status: 'success' | 'error' | 'pending';
  /** The project by name. Without it and `session_id` the project stays; of both, the one that was changed counts. */
  session_name?: string | null | undefined;
  /** The project by its id, a UUID. */
  session_id?: string | null | undefined;
  tags?: string[] | null | undefined;
  /** A UUID. */
  reference_example_id?: string | null | undefined;
  inputs?: ConverterJson | null | undefined;
  outputs?: ConverterJson | null | undefined;
  events?: ConverterJson[] | null | undefined;
  /** `metadata` and `invocation_params`. */
  extra?: ConverterJson | null | undefined;
  /** What went wrong. Does not by itself make `status` an error. */
  error?: string | null | undefined;
  serialized?: ConverterJson | null | undefined;
  /** By name: MIME type and bytes. Names have no dots, quotes or control characters, at most 255 bytes. */
  attachments?: Record<string, readonly [mimeType: string, data: Uint8Array]> | null | undefined;
}

/**
 * Makes the run of a span, or null to drop it: its children then hang on its parent. Called once a span, in a decode
 * thread, and must return at once: no promises. When it throws, or returns anything else, this span alone is dropped.
 */
export type Converter = (span: ConverterSpan, run: ConverterRun) => ConverterRun | null;

/** Throws one readable line when there is no converter in the file. `file` is an absolute path. */
export function loadConverter(file: string): Converter {
  let module: unknown;
  try {
    // Synchronous, as the decoder's making is; loads ES modules, TypeScript and CommonJS alike.
    module = createRequire(import.meta.url)(file);
  } catch (error) {
    throw new Error(`CONVERTER_MODULE ${file} does not load: ${reasonOf(error)}`, { cause: error });
  }
  const converter = exportOf(module);
  if (typeof converter !== 'function') {
    throw new Error(`CONVERTER_MODULE ${file} must export a function as \`default\` or \`convert\``);
  }
  if (types.isAsyncFunction(converter)) {
    throw new Error(`CONVERTER_MODULE ${file} exports an async function; a converter must be synchronous`);
  }
  return converter as Converter;
}

/** `default` before `convert`; of a CommonJS module also what it is as a whole. */
function exportOf(module: unknown): unknown {
  if (typeof module !== 'object' || module === null) return module;
  const { default: main, convert } = module as { default?: unknown; convert?: unknown };
  return main ?? convert;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ((error as NodeJS.ErrnoException).code === 'ERR_REQUIRE_ASYNC_MODULE') return 'it uses await at its top level';
  const [reason = ''] = error.message.trim().split('\n');
  // A syntax error has its place on the first line of the stack, before the message.
  const place = /^(?:file:\/\/)?(\/\S+:\d+)\n/.exec(error.stack ?? '')?.[1];
  return place === undefined ? reason : `${reason} (${place})`;
}
