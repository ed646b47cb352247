/**
 * Inputs and outputs are JSON objects. What an emitter gave is wrapped:
 *
 * | Value                                    | Inputs               | Outputs                                    |
 * | ---------------------------------------- | -------------------- | ------------------------------------------ |
 * | object                                   | as it is             | as it is                                   |
 * | array whose items all have `role`        | `{"messages": […]}`  | `{"messages": […]}`                        |
 * | other array, number, boolean, JSON string | `{"input": …}`      | `{"output": …}`                            |
 * | text                                     | `{"input": "…"}`     | `{"output": "…"}`; of an llm run a message |
 */
import { Node } from './document.ts';
import type { Documents, NodeWord } from './document.ts';
import { RunType } from './span.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import { Loaded } from './value.ts';
import type { Values } from './value.ts';
import type { Writer } from './writer.ts';

const CLOSE_OBJECT = 0x7d;
const CLOSE_ARRAY = 0x5d;

export type Side = 'input' | 'output';

export class Wrapping {
  readonly #docs: Documents;
  readonly #values: Values;
  readonly #l;

  constructor({ docs, values, lit }: Toolbox) {
    this.#docs = docs;
    this.#values = values;
    this.#l = {
      role: lit('role'),
      usage: lit('usage_metadata'),
      messages: lit('{"messages":'),
      input: lit('{"input":'),
      output: lit('{"output":'),
      assistant: lit('{"messages":[{"role":"assistant","content":'),
      closeMessage: lit('}]}'),
      documents: lit('documents'),
      documentsIs: lit('{"documents":['),
      pageContent: lit('page_content'),
      type: lit('type'),
      typeDocument: lit('"type":"Document"'),
    };
  }

  /** Wraps what `values` loaded last, `loaded` being what it returned. */
  write(loaded: number, side: Side, span: Span, out: Writer): boolean {
    const values = this.#values;
    switch (loaded) {
      case Loaded.Absent:
        return false;
      case Loaded.Document:
        // "" says nothing
        if (this.#docs.type(values.node) === Node.String && values.length === 2) return false;
        this.node(values.node, side, span, out);
        return true;
      case Loaded.Text:
        if (side === 'output' && span.runType === RunType.Llm) {
          out.literal(this.#l.assistant);
          out.string(values.at, values.length);
          out.literal(this.#l.closeMessage);
          return true;
        }
        out.literal(side === 'input' ? this.#l.input : this.#l.output);
        out.string(values.at, values.length);
        break;
      default:
        out.literal(side === 'input' ? this.#l.input : this.#l.output);
        out.raw(values.at, values.length);
    }
    out.byte(CLOSE_OBJECT);
    return true;
  }

  /** Wraps a document. */
  node(node: NodeWord, side: Side, span: Span, out: Writer): void {
    const docs = this.#docs;
    if (docs.type(node) === Node.Object) {
      this.object(node, side, span, out);
      return;
    }
    if (docs.everyHas(node, this.#l.role)) out.literal(this.#l.messages);
    else out.literal(side === 'input' ? this.#l.input : this.#l.output);
    docs.copy(node, out);
    out.byte(CLOSE_OBJECT);
  }

  /** An object as it is. */
  object(node: NodeWord, side: Side, span: Span, out: Writer): void {
    if (side === 'output' && this.#docs.member(node, this.#l.usage) !== 0) span.outputsHaveUsage = true;
    this.#docs.copy(node, out);
  }

  /** As `write`, for outputs; documents that a retriever run returns get their type. */
  outputs(loaded: number, span: Span, out: Writer): boolean {
    const docs = this.#docs;
    const node = this.#values.node;
    if (loaded !== Loaded.Document || span.runType !== RunType.Retriever) {
      return this.write(loaded, 'output', span, out);
    }
    if (docs.type(node) === Node.Array && this.#allDocuments(node)) {
      out.literal(this.#l.documentsIs);
      this.#typed(node, out);
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    }
    const list = docs.member(node, this.#l.documents);
    if (list === 0 || docs.type(list) !== Node.Array) return this.write(loaded, 'output', span, out);
    if (docs.member(node, this.#l.usage) !== 0) span.outputsHaveUsage = true;
    const stop = docs.next(node);
    out.byte(0x7b);
    for (let key = docs.first(node); key < stop; key = docs.next(docs.value(key))) {
      if (!docs.counts(node, key)) continue;
      const value = docs.value(key);
      docs.copy(key, out);
      out.byte(0x3a);
      if (value === list) {
        out.byte(0x5b);
        this.#typed(list, out);
        out.close(CLOSE_ARRAY);
      } else docs.copy(value, out);
      out.comma();
    }
    out.close(CLOSE_OBJECT);
    return true;
  }

  #allDocuments(array: NodeWord): boolean {
    const docs = this.#docs;
    if (docs.count(array) === 0) return false;
    const stop = docs.next(array);
    for (let item = docs.first(array); item < stop; item = docs.next(item)) {
      const content = docs.member(item, this.#l.pageContent);
      if (content === 0 || docs.type(content) !== Node.String) return false;
    }
    return true;
  }

  #typed(array: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const stop = docs.next(array);
    for (let item = docs.first(array); item < stop; item = docs.next(item)) {
      docs.copy(item, out);
      if (docs.member(item, this.#l.pageContent) !== 0 && docs.member(item, this.#l.type) === 0) {
        // the closing brace gives way; the object has a member at least
        out.pos--;
        out.comma();
        out.literal(this.#l.typeDocument);
        out.byte(CLOSE_OBJECT);
      }
      out.comma();
    }
  }
}
