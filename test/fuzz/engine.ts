/**
 * Runs a target on ever new inputs: those that reach code nobody reached before are kept and changed further. With the
 * same seed and the same code, the same inputs in the same order.
 */
import type { Coverage } from './coverage.ts';
import { mutate, plain, type MutationTools } from './mutate.ts';
import { createRandom } from './random.ts';
import type { Target } from './target.ts';

export interface EngineSettings {
  readonly target: Target;
  readonly coverage: Coverage;
  readonly seeds: readonly Uint8Array[];
  /** Words of the code under test, beside the target's own. */
  readonly words: Iterable<string>;
  readonly seed: number;
  /** Told before an input is run, so that somebody else knows when it does not come back. */
  readonly onRun: (input: Uint8Array) => void;
  /** Asked after every input. */
  readonly isOver: (runCount: number, keptCount: number) => boolean;
}

export interface Finding {
  readonly input: Uint8Array;
  readonly error: string;
}

export interface Outcome {
  readonly runCount: number;
  readonly findings: Finding[];
  /** The inputs that were kept, in the order in which they were found. */
  readonly corpus: Uint8Array[];
}

interface Kept {
  readonly bytes: Uint8Array;
  chosenCount: number;
}

/** One defect is found in many guises; by then it is known. */
const MAX_FINDINGS = 10;
/** Of inputs that reach nothing new, one in so many is checked in full. */
const CHECK_EVERY = 8;
const MAX_SHRINK_RUNS = 3000;
const WORD_LENGTH = { min: 2, max: 60 };

export async function fuzz(settings: EngineSettings): Promise<Outcome> {
  const { target, coverage } = settings;
  const random = createRandom(settings.seed);
  const corpus: Kept[] = [];
  const findings = new Map<string, Finding>();
  let runCount = 0;

  /** What is wrong with it; null when nothing is. `isNews` is asked after the run. */
  const attempt = async (input: Uint8Array, isNews: () => boolean): Promise<string | null> => {
    settings.onRun(input);
    coverage.reset();
    runCount++;
    try {
      const pending = target.run(input);
      if (pending !== undefined) await pending;
      if (isNews() || runCount % CHECK_EVERY === 0) target.check?.(input);
      return null;
    } catch (error) {
      return error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
  };
  const consider = async (input: Uint8Array): Promise<void> => {
    let isNews = false;
    const error = await attempt(input, () => (isNews = coverage.takeNews() > 0));
    if (isNews) corpus.push({ bytes: input, chosenCount: 0 });
    if (error === null) return;
    const kind = kindOf(error);
    if (findings.has(kind) || findings.size >= MAX_FINDINGS) return;
    findings.set(kind, { input, error });
    findings.set(kind, { input: await shrink(input, kind, attempt), error });
  };
  const isOver = (): boolean => findings.size >= MAX_FINDINGS || settings.isOver(runCount, corpus.length);

  for (const seed of [...settings.seeds, ...target.seeds(), new Uint8Array(0)]) {
    if (isOver()) break;
    if (seed.length <= target.maxInputBytes) await consider(plain(seed));
  }
  // Code that is not instrumented has no news to tell.
  if (corpus.length === 0) corpus.push({ bytes: new Uint8Array(0), chosenCount: 0 });
  const words = [...new Set([...target.dictionary, ...settings.words])]
    .filter(({ length }) => length >= WORD_LENGTH.min && length <= WORD_LENGTH.max)
    .map((word) => new Uint8Array(Buffer.from(word)));
  const tools: MutationTools = { random, words, other: () => random.pick(corpus).bytes };
  while (!isOver()) {
    const base = choose(corpus, random.below);
    base.chosenCount++;
    await consider(mutate(base.bytes, target.mutators, tools, target.maxInputBytes));
  }
  return { runCount, findings: [...findings.values()], corpus: corpus.map(({ bytes }) => bytes) };
}

/** Of three drawn at random the one that was chosen least; new ones get their turn soon. */
function choose(corpus: readonly Kept[], below: (limit: number) => number): Kept {
  const draw = (): Kept => corpus[below(corpus.length)] as Kept;
  let chosen = draw();
  for (let left = 2; left > 0; left--) {
    const other = draw();
    if (other.chosenCount < chosen.chosenCount) chosen = other;
  }
  return chosen;
}

/** What makes two failures the same: the message without what varies, and where it was thrown. */
function kindOf(error: string): string {
  const lines = error.split('\n');
  const places = lines.filter((line) => /^\s+at /.test(line)).slice(0, 2);
  return [lines[0], ...places].join('\n').replaceAll(/".*"|'[^']*'|\d+/g, '_');
}

/** The shortest of the input's parts that still fails in the same way, as far as a few thousand runs tell. */
async function shrink(
  input: Uint8Array,
  kind: string,
  attempt: (input: Uint8Array, isNews: () => boolean) => Promise<string | null>,
): Promise<Uint8Array> {
  let best = input;
  let left = MAX_SHRINK_RUNS;
  for (let size = best.length >> 1; size > 0; size = size >> 1) {
    for (let at = 0; at < best.length && left > 0; left--) {
      const shorter = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      const error = await attempt(shorter, () => true);
      if (error !== null && kindOf(error) === kind) best = new Uint8Array(shorter);
      else at += size;
    }
  }
  return best;
}

/** Those of the inputs that together reach much in few bytes, at most `maxBytes` of them. */
export async function distil(
  corpus: readonly Uint8Array[],
  target: Target,
  coverage: Coverage,
  maxBytes: number,
): Promise<Uint8Array[]> {
  let candidates: { input: Uint8Array; news: number[] }[] = [];
  for (const input of corpus) {
    coverage.reset();
    // One that breaks the law has been reported.
    if (await holds(target, input)) candidates.push({ input, news: coverage.features() });
  }
  const reached = new Set<number>();
  const kept: Uint8Array[] = [];
  let leftBytes = maxBytes;
  for (;;) {
    for (const candidate of candidates) candidate.news = candidate.news.filter((feature) => !reached.has(feature));
    candidates = candidates.filter(({ input, news }) => news.length > 0 && input.length <= leftBytes);
    const worth = ({ input, news }: (typeof candidates)[number]): number => news.length / Math.sqrt(input.length + 1);
    const [first, ...others] = candidates;
    if (first === undefined) return kept;
    const best = others.reduce((a, b) => (worth(b) > worth(a) ? b : a), first);
    for (const feature of best.news) reached.add(feature);
    kept.push(best.input);
    leftBytes -= best.input.length;
  }
}

async function holds(target: Target, input: Uint8Array): Promise<boolean> {
  try {
    await target.run(input);
    target.check?.(input);
    return true;
  } catch {
    return false;
  }
}
