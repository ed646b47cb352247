/** Choices of a completion: an index, a finish reason, and a message in whatever shape it came. */
import { Node } from '../document.ts';
import type { Documents, NodeWord } from '../document.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Writer } from '../writer.ts';
import type { ToolCalls } from './calls.ts';
import { IN_CHOICE, PartKind } from './kinds.ts';
import type { MessageLiterals } from './literals.ts';
import type { Messages } from './messages.ts';
import type { Nodes } from './nodes.ts';
import type { Parts } from './parts.ts';

const CLOSE_OBJECT = 0x7d;

export class Choices {
  readonly #docs: Documents;
  readonly #nodes: Nodes;
  readonly #parts: Parts;
  readonly #calls: ToolCalls;
  readonly #messages: Messages;
  readonly #l: MessageLiterals;

  constructor({ docs }: Toolbox, literals: MessageLiterals, messages: Messages) {
    this.#docs = docs;
    this.#l = literals;
    this.#messages = messages;
    this.#nodes = messages.nodes;
    this.#parts = messages.parts;
    this.#calls = messages.calls;
  }

  /**
   * Writes `{"index"?,"finish_reason"?,"message":…}` from a choice object; its `message` may be a message, parts, text
   * or missing, and tool calls may stand beside it.
   */
  choice(node: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    out.literal(this.#l.open);
    const index = this.index(node);
    if (index >= 0) {
      out.literal(this.#l.indexIs);
      out.number(index);
      out.comma();
    }
    const finish = this.#nodes.filled(docs.member(node, w.finishReason));
    if (finish !== 0) {
      out.literal(this.#l.finishReasonMember);
      docs.copy(finish, out);
      out.comma();
    }
    out.literal(this.#l.messageIs);
    this.message(docs.present(node, w.message), docs.present(node, w.toolCalls), out);
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  /** Writes the message of a choice; `calls` count where the message has no tool calls of its own. */
  message(message: NodeWord, calls: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const role = this.#l.assistant;
    const type = message === 0 ? Node.Null : docs.type(message);
    const ownCalls = type === Node.Object ? docs.present(message, this.#l.word.toolCalls) : 0;
    if (type === Node.Object) {
      this.#messages.message(message, role, out, IN_CHOICE, 0);
      out.pos -= 2; // the brace and comma
    } else {
      this.#messages.head(0, role, out);
      if (this.#nodes.everyObject(message)) {
        this.#parts.content(message, this.#parts.kindsOf(message), out, IN_CHOICE);
        this.#calls.member(message, 0, out);
      } else if (type !== Node.Null) {
        out.literal(this.#l.contentIs);
        this.#nodes.stringOrSlice(message, out);
      }
    }
    if (calls !== 0 && !this.#calls.any(ownCalls) && !this.#hasCallParts(message)) this.#calls.member(0, calls, out);
    out.byte(CLOSE_OBJECT);
  }

  /** Whether the message, object or list of parts, has tool calls among its parts. */
  #hasCallParts(message: NodeWord): boolean {
    const docs = this.#docs;
    if (message === 0) return false;
    const list = docs.type(message) === Node.Object ? this.#messages.partsOf(message) : message;
    if (list === 0 || docs.type(list) !== Node.Array || (list === message && !this.#nodes.everyObject(list)))
      return false;
    const stop = docs.next(list);
    for (let part = docs.first(list); part < stop; part = docs.next(part)) {
      if (this.#parts.kind(part) === PartKind.ToolCall) return true;
    }
    return false;
  }

  /** The index of a choice object: an integer from 0, as a number or digits; -1 when it has none. */
  index(node: NodeWord): number {
    const docs = this.#docs;
    const index = docs.present(node, this.#l.word.index);
    if (index === 0) return -1;
    const type = docs.type(index);
    if (type !== Node.Number && type !== Node.String) return -1;
    const text = type === Node.String ? (JSON.parse(docs.text(index)) as string) : docs.text(index);
    if (type === Node.String && !/^\d+$/.test(text)) return -1;
    const number = Number(text);
    return Number.isSafeInteger(number) && number >= 0 ? number : -1;
  }
}
