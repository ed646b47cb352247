/** What conventions are built from; one set per decoder. */
import type { Documents } from './document.ts';
import type { IndexedFamilies, IndexedView } from './indexed.ts';
import type { Kernel, Literal } from './kernel/kernel.ts';
import type { Keys } from './keys.ts';
import type { Values } from './value.ts';
import type { Writer } from './writer.ts';

export interface Toolbox {
  readonly kernel: Kernel;
  readonly keys: Keys;
  readonly docs: Documents;
  readonly values: Values;
  readonly families: IndexedFamilies;
  readonly view: IndexedView;
  /** For what values and documents have to be rewritten into; emptied after every span. */
  readonly scratch: Writer;
  /**
   * Where attributes are put together to a document of their own (see draft.ts), so that a message made of ten
   * attributes is read by the same code as one that came as JSON.
   */
  readonly draft: Writer;
  /** A constant piece of output or a name to compare with. Only at setup. */
  readonly lit: (text: string) => Literal;
}
