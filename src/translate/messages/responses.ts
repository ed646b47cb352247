/** Tool responses among the parts of a message: each becomes a message of its own. */
import { Node } from '../document.ts';
import type { Documents, NodeWord } from '../document.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Writer } from '../writer.ts';
import { PartKind } from './kinds.ts';
import type { MessageLiterals } from './literals.ts';
import type { Nodes } from './nodes.ts';
import type { Parts } from './parts.ts';

const CLOSE_OBJECT = 0x7d;

export class ToolResponses {
  readonly #docs: Documents;
  readonly #nodes: Nodes;
  readonly #parts: Parts;
  readonly #l: MessageLiterals;

  constructor({ docs }: Toolbox, literals: MessageLiterals, nodes: Nodes, parts: Parts) {
    this.#docs = docs;
    this.#l = literals;
    this.#nodes = nodes;
    this.#parts = parts;
  }

  /**
   * Writes the tool responses of a part list as messages. True when there were some and nothing else, so that the
   * carrier message itself is left out.
   */
  write(list: NodeWord, out: Writer): boolean {
    const docs = this.#docs;
    let responses = 0;
    let rest = 0;
    const stop = docs.next(list);
    for (let part = docs.first(list); part < stop; part = docs.next(part)) {
      const kind = this.#parts.kind(part);
      if (kind === PartKind.Skip) continue;
      if (kind !== PartKind.ToolResponse) {
        rest++;
        continue;
      }
      responses++;
      this.#one(part, out);
    }
    return responses > 0 && rest === 0;
  }

  #one(part: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    let id: NodeWord;
    let name: NodeWord = 0;
    let content: NodeWord;
    const type = this.#nodes.typeOf(part);
    const bedrock = type === 0 ? docs.present(part, w.toolResult) : 0;
    if (bedrock !== 0) {
      id = this.#nodes.filled(docs.member(bedrock, w.toolUseId));
      content = docs.present(bedrock, w.content);
      if (content !== 0 && docs.type(content) === Node.Array && docs.count(content) === 1) {
        content = this.#nodes.string(docs.member(docs.first(content), w.text)) || content;
      }
    } else if (docs.is(type, this.#l.kind.vercelToolResult)) {
      id = this.#nodes.filled(docs.member(part, w.vercelCallId));
      name = this.#nodes.filled(docs.member(part, w.toolName));
      content = docs.present(part, w.output);
      const value = docs.member(content, w.value);
      if (content === 0) content = docs.present(part, w.result);
      else if (value !== 0 && this.#nodes.string(docs.member(content, w.type)) !== 0) content = value;
    } else {
      id = this.#nodes.filled(docs.member(part, w.id));
      name = this.#nodes.filled(docs.member(part, w.name));
      content = docs.present(part, w.response) || docs.present(part, w.result);
    }
    out.literal(this.#l.toolRole);
    if (id !== 0) {
      out.literal(this.#l.toolCallIdIs);
      docs.copy(id, out);
    }
    if (name !== 0) {
      out.literal(this.#l.nameIs);
      docs.copy(name, out);
    }
    if (content === 0 || docs.type(content) === Node.Null) out.literal(this.#l.contentNull);
    else {
      out.literal(this.#l.contentIs);
      this.#nodes.stringOrSlice(content, out);
    }
    out.byte(CLOSE_OBJECT);
    out.comma();
  }
}
