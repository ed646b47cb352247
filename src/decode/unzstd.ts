/**
 * Zstandard bodies: libzstd through the optional native package where it could be built, else through Node's own. Both
 * take any number of frames, and neither trusts a frame's statement of its size: memory grows with what really comes.
 */
import { createRequire } from 'node:module';
import { zstdDecompressSync, constants } from 'node:zlib';
import { KiB, MiB } from '../core/units.ts';
import { findZstdFrame } from './zstdframe.ts';

/** What came of a compressed body. */
export type Inflated =
  | { kind: 'inflated'; bytes: Buffer }
  /** More than the limit; nobody knows how much more. */
  | { kind: 'too-large' }
  | { kind: 'malformed'; message: string };

export interface Unzstd {
  /** `bytes` of the outcome are valid until the next call. */
  decompress(source: Buffer, maxBytes: number): Inflated;
}

/**
 * Largest window accepted: what a decoder must keep of the output. HTTP asks for 8 MiB (RFC 9659), but the Go encoder
 * that collectors use goes to 32 MiB at its best level, also for small bodies.
 */
const MAX_WINDOW_LOG = 25;
const MAX_WINDOW_BYTES = 2 ** MAX_WINDOW_LOG;
const FIRST_OUTPUT_BYTES = 256 * KiB;
/** A larger output buffer is let go of after use. */
const KEPT_OUTPUT_BYTES = 4 * MiB;

const TOO_LARGE: Inflated = { kind: 'too-large' };

/** What we use of the package, so that types do not depend on whether it is installed. */
interface ZstdBinding {
  DCtx: new () => {
    /** Returns what is still expected (0: the frame is complete), bytes produced, bytes consumed. */
    decompressStream(target: Uint8Array, source: Uint8Array): [number, number, number];
    setParameter(parameter: number, value: number): void;
    reset(directive: number): void;
  };
  DParameter: { windowLogMax: number };
  ResetDirective: { sessionOnly: number };
}

export function openUnzstd(): Unzstd {
  return openNativeUnzstd() ?? builtinUnzstd;
}

/** Null where the package is not there: it is optional, and building it may have failed at installation. */
export function openNativeUnzstd(): Unzstd | null {
  let binding: ZstdBinding;
  try {
    binding = createRequire(import.meta.url)('zstd-napi/binding') as ZstdBinding;
  } catch {
    // Not an error, and nobody to tell: `builtinUnzstd` does the same, slower.
    return null;
  }
  return new NativeUnzstd(binding);
}

/** One context for the thread's whole life: 3 µs for a small body, where a new one each time costs 27 µs. */
class NativeUnzstd implements Unzstd {
  readonly #context: InstanceType<ZstdBinding['DCtx']>;
  readonly #sessionOnly: number;
  #output = Buffer.allocUnsafeSlow(FIRST_OUTPUT_BYTES);

  constructor(binding: ZstdBinding) {
    this.#context = new binding.DCtx();
    this.#context.setParameter(binding.DParameter.windowLogMax, MAX_WINDOW_LOG);
    this.#sessionOnly = binding.ResetDirective.sessionOnly;
  }

  decompress(source: Buffer, maxBytes: number): Inflated {
    if (this.#output.length > KEPT_OUTPUT_BYTES) this.#output = Buffer.allocUnsafeSlow(FIRST_OUTPUT_BYTES);
    const outcome = this.#decompress(source, maxBytes);
    // Leaves a frame that was given up; after a complete one it does nothing.
    if (outcome.kind !== 'inflated') this.#context.reset(this.#sessionOnly);
    return outcome;
  }

  #decompress(source: Buffer, maxBytes: number): Inflated {
    let input = source;
    let outputBytes = 0;
    for (;;) {
      let expected, producedBytes, consumedBytes;
      try {
        const target = outputBytes === 0 ? this.#output : this.#output.subarray(outputBytes);
        [expected, producedBytes, consumedBytes] = this.#context.decompressStream(target, input);
      } catch (error) {
        return malformed(error);
      }
      outputBytes += producedBytes;
      if (outputBytes > maxBytes) return TOO_LARGE;
      if (consumedBytes > 0) input = input.subarray(consumedBytes);
      if (expected === 0 && input.length === 0) {
        return { kind: 'inflated', bytes: this.#output.subarray(0, outputBytes) };
      }
      if (outputBytes === this.#output.length) this.#grow(maxBytes);
      else if (input.length === 0) return malformed('the frame ends early');
    }
  }

  /** One byte beyond the limit, so that crossing it shows. */
  #grow(maxBytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.min(2 * this.#output.length, maxBytes + 1));
    this.#output.copy(larger);
    this.#output = larger;
  }
}

export const builtinUnzstd: Unzstd = {
  decompress: (source, maxBytes) => {
    const outputs: Buffer[] = [];
    let outputBytes = 0;
    for (let offset = 0; offset < source.length || offset === 0;) {
      const frame = findZstdFrame(source, offset);
      if (frame === null) return malformed('no frame, or it ends early');
      if (frame.kind === 'frame') {
        if (frame.windowBytes > MAX_WINDOW_BYTES) return malformed('the window is too large');
        try {
          const output = zstdDecompressSync(source.subarray(offset, frame.endOffset), {
            // At least 1 is asked for; an overrun by one byte shows below.
            maxOutputLength: Math.max(1, maxBytes - outputBytes),
            params: { [constants.ZSTD_d_windowLogMax]: MAX_WINDOW_LOG },
          });
          outputBytes += output.length;
          outputs.push(output);
        } catch (error) {
          if (isTooLarge(error)) return TOO_LARGE;
          return malformed(error);
        }
        if (outputBytes > maxBytes) return TOO_LARGE;
      }
      offset = frame.endOffset;
    }
    const [first] = outputs;
    return { kind: 'inflated', bytes: outputs.length === 1 && first !== undefined ? first : Buffer.concat(outputs) };
  },
};

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
}

function malformed(reason: unknown): Inflated {
  return { kind: 'malformed', message: `zstd: ${reason instanceof Error ? reason.message : String(reason)}` };
}
