/** OpenInference's indexed embeddings: texts in, vectors out. */
import { Node } from '../../document.ts';
import { ValueType } from '../../kernel/kernel.ts';
import type { Source } from '../../span.ts';
import type { Toolbox } from '../../toolbox.ts';
import { Loaded } from '../../value.ts';
import type { Wrapping } from '../../wrap.ts';
import type { WholeValues } from './values.ts';

const CLOSE_ARRAY = 0x5d;
const CLOSE_OBJECT = 0x7d;

const EmbeddingField = { Text: 1, Vector: 2 } as const;

export interface IndexedEmbeddings {
  readonly inputs: Source;
  readonly outputs: Source;
}

export function indexedEmbeddings(
  { docs, values, view, families, lit }: Toolbox,
  wrapping: Wrapping,
  whole: WholeValues,
): IndexedEmbeddings {
  const embeddings = families.declare([
    ['embedding.embeddings.#.embedding.text', EmbeddingField.Text],
    ['embedding.embeddings.#.embedding.vector', EmbeddingField.Vector],
  ]);
  const l = {
    inputOpen: lit('{"input":['),
    embeddingsOpen: lit('{"embeddings":['),
    nullIs: lit('null'),
  };

  const inputs: Source = (span, out) => {
    if ((span.families & embeddings) === 0) return false;
    view.select(span.attributes, embeddings);
    const start = out.pos;
    out.literal(l.inputOpen);
    const first = out.pos;
    for (let from = 0; from < view.count;) {
      const to = view.groupEnd(from);
      const text = view.find(from, to, EmbeddingField.Text);
      if (text >= 0 && !(view.type(text) === ValueType.String && view.b(text) === 0)) {
        values.write(view.type(text), view.a(text), view.b(text), out);
        out.comma();
      }
      from = to;
    }
    if (out.pos === first) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  };

  const outputs: Source = (span, out) => {
    if ((span.families & embeddings) === 0) return false;
    view.select(span.attributes, embeddings);
    const start = out.pos;
    out.literal(l.embeddingsOpen);
    const first = out.pos;
    for (let from = 0; from < view.count;) {
      const to = view.groupEnd(from);
      const vector = view.find(from, to, EmbeddingField.Vector);
      if (vector >= 0 && !(view.type(vector) === ValueType.String && view.b(vector) === 0)) {
        const loaded = values.load(view.type(vector), view.a(vector), view.b(vector));
        if (loaded === Loaded.Absent) out.literal(l.nullIs);
        else values.copy(loaded, out);
        out.comma();
      }
      from = to;
    }
    if (out.pos === first) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    // the whole response, where it is there as an object, says more than its vectors
    const loaded = whole.loadOutput(span);
    if (loaded === Loaded.Document && docs.type(values.node) === Node.Object) {
      out.pos = start;
      wrapping.object(values.node, 'output', span, out);
    }
    return true;
  };

  return { inputs, outputs };
}
