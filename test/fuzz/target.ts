/** Something that takes bytes from outside, and the law that holds for it whatever the bytes. */
import type { Mutator } from './mutate.ts';

export interface Target {
  /** Longer inputs are not tried. */
  readonly maxInputBytes: number;
  /** Where mutation begins, beside the committed seeds. */
  seeds(): Uint8Array[];
  /** Words that the format is made of. */
  readonly dictionary: readonly string[];
  /** Ways to change an input that know the format; tried beside those that know bytes only. */
  readonly mutators: readonly Mutator[];
  /** Throws, or rejects, when the law is broken. */
  run(input: Uint8Array): void | Promise<void>;
  /** The part of the law that is dear to check: for inputs that reach something new, and for some of the others. */
  check?(input: Uint8Array): void;
  close?(): Promise<void>;
}

export const TARGET_NAMES = ['protobuf', 'json', 'multipart', 'intake', 'bodies', 'routes'] as const;
export type TargetName = (typeof TARGET_NAMES)[number];

/** Loads the target: instrumented, when the loading thread is. */
export async function openTarget(name: TargetName): Promise<Target> {
  const { open } = (await import(`./targets/${name}.ts`)) as { open: () => Target | Promise<Target> };
  return open();
}
