/**
 * The parts of a message: what kind each is, and the content that they become. A lone text is a string; anything else is
 * an array of blocks. Tool responses belong to responses.ts, tool calls to calls.ts.
 */
import { Node } from '../document.ts';
import type { Documents, NodeWord } from '../document.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Writer } from '../writer.ts';
import { IN_MESSAGES, PartKind } from './kinds.ts';
import type { Placement } from './kinds.ts';
import type { MessageLiterals } from './literals.ts';
import { Media } from './media.ts';
import type { Nodes } from './nodes.ts';

const CLOSE_ARRAY = 0x5d;
const CLOSE_OBJECT = 0x7d;
const COLON = 0x3a;

export class Parts {
  readonly #docs: Documents;
  readonly #nodes: Nodes;
  readonly #media: Media;
  readonly #l: MessageLiterals;

  constructor(box: Toolbox, literals: MessageLiterals, nodes: Nodes) {
    this.#docs = box.docs;
    this.#l = literals;
    this.#nodes = nodes;
    this.#media = new Media(box, literals, nodes);
  }

  /** The kinds among a list of parts, as bits. */
  kindsOf(list: NodeWord): number {
    const docs = this.#docs;
    const stop = docs.next(list);
    let kinds = 0;
    for (let part = docs.first(list); part < stop; part = docs.next(part)) kinds |= 1 << this.kind(part);
    return kinds;
  }

  /** An array that is not empty and holds strings and objects only: a list of parts. */
  isList(node: NodeWord): boolean {
    const docs = this.#docs;
    if (docs.type(node) !== Node.Array || docs.count(node) === 0) return false;
    const stop = docs.next(node);
    for (let item = docs.first(node); item < stop; item = docs.next(item)) {
      const type = docs.type(item);
      if (type !== Node.Object && type !== Node.String) return false;
    }
    return true;
  }

  textOf(part: NodeWord): NodeWord {
    const w = this.#l.word;
    return (
      this.#nodes.string(this.#docs.member(part, w.content)) || this.#nodes.string(this.#docs.member(part, w.text))
    );
  }

  #reasoningOf(part: NodeWord): NodeWord {
    const docs = this.#docs;
    const w = this.#l.word;
    return (
      this.#nodes.string(docs.member(part, w.content)) ||
      this.#nodes.string(docs.member(part, w.thinking)) ||
      this.#nodes.string(docs.member(part, w.text)) ||
      this.#nodes.string(docs.member(part, w.reasoning))
    );
  }

  #bedrockReasoning(part: NodeWord): NodeWord {
    const docs = this.#docs;
    const w = this.#l.word;
    return docs.member(docs.member(docs.member(part, w.reasoningContent), w.reasoningText), w.text);
  }

  kind(part: NodeWord): number {
    const docs = this.#docs;
    const w = this.#l.word;
    const k = this.#l.kind;
    const nodeType = docs.type(part);
    if (nodeType === Node.String) return PartKind.BareText;
    if (nodeType === Node.Null) return PartKind.Skip;
    if (nodeType !== Node.Object) return PartKind.Pass;
    const type = this.#nodes.typeOf(part);
    if (type === 0) {
      if (this.#nodes.string(docs.member(part, w.text)) !== 0) return PartKind.Text;
      const use = docs.present(part, w.toolUse);
      if (use !== 0 && docs.type(use) === Node.Object) return PartKind.ToolCall;
      const result = docs.present(part, w.toolResult);
      if (result !== 0 && docs.type(result) === Node.Object) return PartKind.ToolResponse;
      return this.#nodes.string(this.#bedrockReasoning(part)) !== 0 ? PartKind.BedrockReasoning : PartKind.Pass;
    }
    if (docs.type(type) !== Node.String) return PartKind.Pass;
    if (docs.is(type, w.text)) return this.textOf(part) !== 0 ? PartKind.Text : PartKind.Pass;
    if (docs.is(type, w.reasoning) || docs.is(type, w.thinking))
      return this.#reasoningOf(part) !== 0 ? PartKind.Reasoning : PartKind.Pass;
    if (docs.is(type, k.tool_call) || docs.is(type, k.vercelToolCall)) return PartKind.ToolCall;
    if (docs.is(type, k.tool_call_response) || docs.is(type, k.vercelToolResult)) return PartKind.ToolResponse;
    return this.#media.kind(part, type);
  }

  /** Writes `,"content":…` from a part list. */
  content(list: NodeWord, kinds: number, out: Writer, placement: Placement): void {
    const docs = this.#docs;
    const stop = docs.next(list);
    if (kinds === 1 << PartKind.Text && docs.count(list) === 1 && !this.#hasFurther(docs.first(list))) {
      out.literal(this.#l.contentIs);
      docs.copy(this.textOf(docs.first(list)), out);
      return;
    }
    let blocks = 0;
    let only: NodeWord = 0;
    let onlyKind: number = PartKind.Skip;
    for (let part = docs.first(list); part < stop; part = docs.next(part)) {
      const kind = this.kind(part);
      if (!this.#isBlock(kind, placement)) continue;
      blocks++;
      only = part;
      onlyKind = kind;
    }
    if (blocks === 0) {
      if (!placement.inChoice) out.literal(this.#l.contentNull);
      return;
    }
    if (blocks === 1) {
      if (onlyKind === PartKind.BareText) {
        out.literal(this.#l.contentIs);
        docs.copy(only, out);
        return;
      }
      if (onlyKind === PartKind.Text && !this.#hasFurther(only)) {
        out.literal(this.#l.contentIs);
        docs.copy(this.textOf(only), out);
        return;
      }
    }
    out.literal(this.#l.contentArray);
    for (let part = docs.first(list); part < stop; part = docs.next(part)) {
      const kind = this.kind(part);
      if (this.#isBlock(kind, placement)) this.#block(part, kind, out);
    }
    out.close(CLOSE_ARRAY);
  }

  #isBlock(kind: number, placement: Placement): boolean {
    if (kind === PartKind.Skip || kind === PartKind.ToolCall) return false;
    return kind !== PartKind.ToolResponse || placement.inChoice;
  }

  /** Writes a part list's blocks, each with a comma. */
  blocks(list: NodeWord, out: Writer): void {
    const docs = this.#docs;
    const stop = docs.next(list);
    for (let part = docs.first(list); part < stop; part = docs.next(part)) {
      const kind = this.kind(part);
      if (this.#isBlock(kind, IN_MESSAGES)) this.#block(part, kind, out);
    }
  }

  #block(part: NodeWord, kind: number, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    switch (kind) {
      case PartKind.BareText:
        out.literal(this.#l.typeText);
        docs.copy(part, out);
        break;
      case PartKind.Text:
        out.literal(this.#l.typeText);
        docs.copy(this.textOf(part), out);
        this.#further(part, false, out);
        break;
      case PartKind.Reasoning:
        out.literal(this.#l.typeReasoning);
        docs.copy(this.#reasoningOf(part), out);
        this.#further(part, true, out);
        break;
      case PartKind.BedrockReasoning:
        out.literal(this.#l.typeReasoning);
        docs.copy(this.#bedrockReasoning(part), out);
        break;
      case PartKind.ImageUrl: {
        const type = this.#nodes.typeOf(part);
        const url = docs.member(part, docs.is(type, w.uri) ? w.uri : docs.is(type, w.imageUrl) ? w.imageUrl : w.url);
        out.literal(this.#l.typeImage);
        docs.copy(url, out);
        out.literal(this.#l.closeTwo);
        out.comma();
        return;
      }
      case PartKind.ImageData:
        this.#media.image(part, out);
        return;
      case PartKind.AudioUrl:
      case PartKind.AudioData:
        this.#media.audio(part, kind, out);
        break;
      case PartKind.File:
        out.literal(this.#l.typeFile);
        docs.copy(docs.member(part, w.fileId), out);
        out.literal(this.#l.closeTwo);
        out.comma();
        return;
      default:
        docs.copy(part, out);
        out.comma();
        return;
    }
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  /** Whether a text part has members that are not null besides its type and text. */
  #hasFurther(part: NodeWord): boolean {
    const docs = this.#docs;
    const stop = docs.next(part);
    for (let key = docs.first(part); key < stop; key = docs.next(docs.value(key))) {
      if (this.#isTextKey(key) || this.#isKindKey(part, key) || !docs.counts(part, key)) continue;
      if (docs.type(docs.value(key)) !== Node.Null) return true;
    }
    return false;
  }

  #isTextKey(key: NodeWord): boolean {
    const w = this.#l.word;
    return this.#docs.is(key, w.type) || this.#docs.is(key, w.text) || this.#docs.is(key, w.content);
  }

  /** Whether the key is the `kind` that stands for the part's type. */
  #isKindKey(part: NodeWord, key: NodeWord): boolean {
    const docs = this.#docs;
    const w = this.#l.word;
    return docs.is(key, w.kind) && docs.present(part, w.type) === 0 && this.#nodes.string(docs.value(key)) !== 0;
  }

  /** Writes a part's members that are not null, those apart that may hold its text. */
  #further(part: NodeWord, isReasoning: boolean, out: Writer): void {
    const docs = this.#docs;
    const w = this.#l.word;
    const stop = docs.next(part);
    for (let key = docs.first(part); key < stop; key = docs.next(docs.value(key))) {
      const value = docs.value(key);
      if (this.#isTextKey(key) || this.#isKindKey(part, key) || docs.type(value) === Node.Null) continue;
      if (!docs.counts(part, key)) continue;
      if (isReasoning && (docs.is(key, w.thinking) || docs.is(key, w.reasoning))) continue;
      out.comma();
      docs.copy(key, out);
      out.byte(COLON);
      docs.copy(value, out);
    }
  }
}
