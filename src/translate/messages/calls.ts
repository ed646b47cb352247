/** Tool calls: parts and `tool_calls` members of any family become OpenAI's shape, arguments as a string. */
import { Node } from '../document.ts';
import type { Documents, NodeWord } from '../document.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Writer } from '../writer.ts';
import { PartKind } from './kinds.ts';
import type { MessageLiterals } from './literals.ts';
import type { Nodes } from './nodes.ts';
import type { Parts } from './parts.ts';

const CLOSE_ARRAY = 0x5d;
const CLOSE_OBJECT = 0x7d;

export class ToolCalls {
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

  /** Writes `,"tool_calls":[…]` from parts, then from the message's own member; nothing when there are none. */
  member(list: NodeWord, calls: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const start = out.pos;
    out.literal(this.#l.toolCallsIs);
    const first = out.pos;
    if (list !== 0) {
      const stop = docs.next(list);
      for (let part = docs.first(list); part < stop; part = docs.next(part)) {
        if (this.#parts.kind(part) === PartKind.ToolCall) this.part(part, out);
      }
    }
    if (calls !== 0) this.list(calls, out);
    if (out.pos === first) out.pos = start;
    else out.close(CLOSE_ARRAY);
  }

  /** Writes the elements of a `tool_calls` array, or of a string that holds one. */
  list(node: NodeWord, out: Writer): void {
    const docs = this.#docs;
    let list = node;
    if (docs.type(list) === Node.String) list = this.#nodes.parseString(list);
    if (list === 0 || docs.type(list) !== Node.Array) return;
    const stop = docs.next(list);
    for (let call = docs.first(list); call < stop; call = docs.next(call)) this.call(call, out);
  }

  /** Whether a `tool_calls` member has any element. */
  any(calls: NodeWord): boolean {
    if (calls === 0) return false;
    const list = this.#docs.type(calls) === Node.String ? this.#nodes.parseString(calls) : calls;
    return list !== 0 && this.#docs.type(list) === Node.Array && this.#docs.count(list) > 0;
  }

  /** One element of `tool_calls`: OpenAI shape, or any flat one with a name; others unchanged. */
  call(call: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    const fn = docs.member(call, w.function);
    if (fn !== 0 && docs.type(fn) === Node.Object) {
      const id = this.#nodes.filled(docs.member(call, w.id));
      if (id !== 0) {
        out.literal(this.#l.idIs);
        docs.copy(id, out);
        out.comma();
      } else out.literal(this.#l.open);
      out.literal(this.#l.typeIs);
      const type = this.#nodes.filled(docs.member(call, w.type));
      if (type !== 0) docs.copy(type, out);
      else out.literal(this.#l.defaultFunction);
      out.literal(this.#l.functionIs);
      this.#writeBody(this.#nodes.filled(docs.member(fn, w.name)), docs.present(fn, w.arguments), out);
      return;
    }
    if (this.#nodes.string(docs.member(call, w.name)) !== 0) {
      const args = docs.present(call, w.arguments) || docs.present(call, w.args) || docs.present(call, w.input);
      this.#write(
        this.#nodes.filled(docs.member(call, w.id)),
        this.#nodes.filled(docs.member(call, w.name)),
        args,
        out,
      );
      return;
    }
    docs.copy(call, out);
    out.comma();
  }

  /** A part that is a tool call, of any family. */
  part(part: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    const type = this.#nodes.typeOf(part);
    const bedrock = type === 0 ? docs.present(part, w.toolUse) : 0;
    if (bedrock !== 0) {
      this.#write(
        this.#nodes.filled(docs.member(bedrock, w.toolUseId)),
        this.#nodes.filled(docs.member(bedrock, w.name)),
        docs.present(bedrock, w.input),
        out,
      );
    } else if (type !== 0 && docs.is(type, this.#l.kind.tool_call)) {
      this.#write(
        this.#nodes.filled(docs.member(part, w.id)),
        this.#nodes.filled(docs.member(part, w.name)),
        docs.present(part, w.arguments),
        out,
      );
    } else this.vercel(part, out);
  }

  /** `{toolCallId, toolName, input or args}`. */
  vercel(part: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    this.#write(
      this.#nodes.filled(docs.member(part, w.vercelCallId)),
      this.#nodes.filled(docs.member(part, w.toolName)),
      docs.present(part, w.input) || docs.present(part, w.args),
      out,
    );
  }

  #write(id: NodeWord, name: NodeWord, args: NodeWord, out: Writer): void {
    if (id !== 0) {
      out.literal(this.#l.idIs);
      this.#docs.copy(id, out);
      out.comma();
    } else out.literal(this.#l.open);
    out.literal(this.#l.typeFunction);
    this.#writeBody(name, args, out);
  }

  #writeBody(name: NodeWord, args: NodeWord, out: Writer): void {
    if (name !== 0) {
      out.literal(this.#l.callName);
      this.#docs.copy(name, out);
      out.comma();
    }
    if (args !== 0) {
      out.literal(this.#l.callArguments);
      this.#nodes.stringOrSlice(args, out);
    }
    out.close(CLOSE_OBJECT);
    out.byte(CLOSE_OBJECT);
    out.comma();
  }
}
