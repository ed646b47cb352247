/** Tool definitions: flat ones become OpenAI's shape, others stay as they are. */
import { Node } from '../document.ts';
import type { Documents, NodeWord } from '../document.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Writer } from '../writer.ts';
import type { MessageLiterals } from './literals.ts';
import type { Nodes } from './nodes.ts';

export class ToolDefinitions {
  readonly #docs: Documents;
  readonly #nodes: Nodes;
  readonly #l: MessageLiterals;

  constructor({ docs }: Toolbox, literals: MessageLiterals, nodes: Nodes) {
    this.#docs = docs;
    this.#l = literals;
    this.#nodes = nodes;
  }

  /** Writes the elements of an array of tool definitions, each with a comma. */
  definitions(array: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const stop = docs.next(array);
    for (let item = docs.first(array); item < stop; item = docs.next(item)) this.definition(item, out);
  }

  definition(item: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    const name = this.#nodes.string(docs.member(item, w.name));
    const type = docs.present(item, w.type);
    const flat =
      name !== 0 &&
      docs.member(item, w.function) === 0 &&
      (type === 0 || (docs.type(type) === Node.String && docs.is(type, w.function)));
    if (!flat) {
      docs.copy(item, out);
      out.comma();
      return;
    }
    out.literal(this.#l.toolFunction);
    docs.copy(name, out);
    const description = docs.present(item, w.description);
    if (description !== 0) {
      out.literal(this.#l.descriptionIs);
      docs.copy(description, out);
    }
    const parameters =
      docs.present(item, w.parameters) ||
      docs.present(item, w.inputSchema) ||
      docs.present(item, w.input_schema) ||
      docs.present(item, w.parametersJsonSchema);
    if (parameters !== 0) {
      out.literal(this.#l.parametersIs);
      docs.copy(parameters, out);
    }
    out.literal(this.#l.closeTwo);
    out.comma();
  }
}
