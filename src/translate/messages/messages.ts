/**
 * The one normal form of chat messages. Whatever family a message comes from (parts of the GenAI conventions, OpenAI and
 * Anthropic shapes, AI SDK content, Pydantic AI, Semantic Kernel, Bedrock blocks), it leaves as
 * `{role, content, tool_calls?, name?, tool_call_id?, finish_reason?, …}`:
 *
 * | Part                                              | becomes                                                      |
 * | ------------------------------------------------- | ------------------------------------------------------------ |
 * | text alone                                        | `content` as a string                                        |
 * | several parts                                     | `content` as blocks: text, reasoning, image_url, audio, file |
 * | tool call                                         | `tool_calls[]`: id, type function, name, arguments as string |
 * | tool response                                     | a message of its own, role tool, beside its carrier          |
 * | anything else                                     | a block, unchanged                                           |
 *
 * Works on the tape of a document; strings are copied as source slices, never decoded.
 */
import { Node } from '../document.ts';
import type { Documents, NodeWord } from '../document.ts';
import type { Kernel, Literal } from '../kernel/kernel.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Writer } from '../writer.ts';
import { ToolCalls } from './calls.ts';
import { Choices } from './choices.ts';
import { IN_CHOICE, IN_MESSAGES, PartKind } from './kinds.ts';
import type { Placement } from './kinds.ts';
import { messageLiterals } from './literals.ts';
import type { MessageLiterals } from './literals.ts';
import { Nodes } from './nodes.ts';
import { Parts } from './parts.ts';
import { ToolResponses } from './responses.ts';
import { ToolDefinitions } from './tools.ts';

const CLOSE_OBJECT = 0x7d;
const COLON = 0x3a;

export class Messages {
  readonly nodes: Nodes;
  readonly parts: Parts;
  readonly calls: ToolCalls;
  readonly tools: ToolDefinitions;
  readonly choices: Choices;
  readonly #toolResponses: ToolResponses;
  readonly #kernel: Kernel;
  readonly #docs: Documents;
  readonly #l: MessageLiterals;

  // Of the message read last.
  /** Kinds of its parts, as bits. */
  #kinds = 0;
  #role: NodeWord = 0;
  /** The value of `content`. */
  #text: NodeWord = 0;
  /** The list of parts, from `parts` or `content`. */
  #list: NodeWord = 0;
  #callList: NodeWord = 0;
  #name: NodeWord = 0;
  #toolCallId: NodeWord = 0;
  #finish: NodeWord = 0;
  #id: NodeWord = 0;
  #others = false;

  constructor(box: Toolbox) {
    this.#kernel = box.kernel;
    this.#docs = box.docs;
    this.#l = messageLiterals(box.lit);
    this.nodes = new Nodes(box, this.#l);
    this.parts = new Parts(box, this.#l, this.nodes);
    this.calls = new ToolCalls(box, this.#l, this.nodes, this.parts);
    this.#toolResponses = new ToolResponses(box, this.#l, this.nodes, this.parts);
    this.tools = new ToolDefinitions(box, this.#l, this.nodes);
    this.choices = new Choices(box, this.#l, this);
  }

  /**
   * Writes one element of a message array: object, or string as a message of the default role; others are skipped.
   * `finish` is a finish reason known from elsewhere, or 0.
   */
  item(node: NodeWord, defaultRole: Literal, out: Writer, finish: NodeWord): void {
    const type = this.#docs.type(node);
    if (type === Node.Object) this.message(node, defaultRole, out, IN_MESSAGES, finish);
    else if (type === Node.String) {
      this.head(0, defaultRole, out);
      out.literal(this.#l.contentIs);
      this.#docs.copy(node, out);
      if (finish !== 0) {
        out.literal(this.#l.finishReasonIs);
        this.#docs.copy(finish, out);
      }
      out.byte(CLOSE_OBJECT);
      out.comma();
    }
  }

  /** Writes all elements of a message array. */
  items(array: NodeWord, defaultRole: Literal, out: Writer): void {
    const docs = this.#docs;
    const stop = docs.next(array);
    for (let item = docs.first(array); item < stop; item = docs.next(item)) this.item(item, defaultRole, out, 0);
  }

  /** Writes one message made of a list of parts, unless nothing comes of it. */
  ofParts(list: NodeWord, role: Literal, out: Writer): void {
    const start = out.pos;
    this.head(0, role, out);
    const head = out.pos;
    this.parts.content(list, this.parts.kindsOf(list), out, IN_CHOICE);
    const hasContent = out.pos > head;
    if (!hasContent) out.literal(this.#l.contentNull);
    const calls = out.pos;
    this.calls.member(list, 0, out);
    if (!hasContent && out.pos === calls) {
      out.pos = start;
      return;
    }
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  /** `{"role":…`: the node's text, `model` as assistant, or the default. */
  head(role: NodeWord, defaultRole: Literal, out: Writer): void {
    out.literal(this.#l.role);
    if (role === 0) out.literal(defaultRole);
    else if (this.#docs.is(role, this.#l.word.model)) out.literal(this.#l.assistant);
    else this.#docs.copy(role, out);
  }

  /** Reads the members of a message that the normal form knows. */
  #read(node: NodeWord): void {
    const docs = this.#docs;
    const w = this.#l.word;
    this.#role = 0;
    this.#callList = 0;
    this.#name = 0;
    this.#toolCallId = 0;
    this.#finish = 0;
    this.#id = 0;
    this.#others = false;
    this.#text = 0;
    let parts = 0;
    const stop = docs.next(node);
    for (let key = docs.first(node); key < stop; key = docs.next(docs.value(key))) {
      const value = docs.value(key);
      if (docs.is(key, w.role)) this.#role = this.nodes.filled(value);
      else if (docs.is(key, w.content)) this.#text = value;
      else if (docs.is(key, w.parts)) {
        parts = docs.type(value) === Node.Array ? value : 0;
        if (parts === 0) this.#others = true;
      } else if (docs.is(key, w.toolCalls)) this.#callList = value;
      else if (docs.is(key, w.name)) this.#name = this.nodes.filled(value);
      else if (docs.is(key, w.toolCallId)) this.#toolCallId = this.nodes.filled(value);
      else if (docs.is(key, w.finishReason)) this.#finish = this.nodes.filled(value);
      else {
        this.#others = true;
        if (docs.is(key, w.id)) this.#id = value;
      }
    }
    this.#list = parts !== 0 ? parts : this.#text !== 0 && this.parts.isList(this.#text) ? this.#text : 0;
    this.#kinds = this.#list === 0 ? 0 : this.parts.kindsOf(this.#list);
  }

  /**
   * Writes a message object and its tool responses, which are messages of their own; each is followed by a comma.
   * `defaultRole` is a quoted literal; `otherFinish` a finish reason for a message that has none, or 0.
   */
  message(node: NodeWord, defaultRole: Literal, out: Writer, placement: Placement, otherFinish: NodeWord): void {
    this.#read(node);
    if (placement.inChoice || (this.#kinds & (1 << PartKind.ToolResponse)) === 0) {
      this.#write(node, defaultRole, out, placement, otherFinish);
      return;
    }
    // Responses stand before what a user adds to them, but after the calls that they answer.
    const callsFirst = this.hasCalls(node);
    if (callsFirst) this.carrier(node, defaultRole, out, placement, otherFinish);
    if (this.responses(node, out) || callsFirst) return;
    this.carrier(node, defaultRole, out, placement, otherFinish);
  }

  /** The list of parts of a message object, from `parts` or `content`, or 0. */
  partsOf(node: NodeWord): NodeWord {
    this.#read(node);
    return this.#list;
  }

  /** Whether the message will have tool calls, from its parts or its own member. */
  hasCalls(node: NodeWord): boolean {
    this.#read(node);
    return this.calls.any(this.#callList) || (this.#kinds & (1 << PartKind.ToolCall)) !== 0;
  }

  /** Writes the tool responses among a message's parts. True when the message is nothing else. */
  responses(node: NodeWord, out: Writer): boolean {
    this.#read(node);
    return this.#list !== 0 && this.#toolResponses.write(this.#list, out) && !this.calls.any(this.#callList);
  }

  /** Whether the message's resulting role is the one of the quoted literal. */
  hasRole(node: NodeWord, defaultRole: Literal, role: Literal): boolean {
    const own = this.nodes.filled(this.#docs.member(node, this.#l.word.role));
    if (own === 0) return defaultRole.at === role.at;
    if (this.#docs.is(own, this.#l.word.model)) return role.at === this.#l.assistant.at;
    const start = this.#docs.start(own);
    const length = this.#docs.end(own) - start;
    if (this.#docs.hasEscape(start, length)) {
      return JSON.stringify(JSON.parse(this.#docs.text(own))) === this.#quotedText(role);
    }
    return length === role.length && this.#kernel.x.equals(start, role.at, length) !== 0;
  }

  #hasToolRole(node: NodeWord, defaultRole: Literal): boolean {
    return this.hasRole(node, defaultRole, this.#l.tool);
  }

  #quotedText(literal: Literal): string {
    return Buffer.from(this.#kernel.u8.subarray(literal.at, literal.at + literal.length)).toString('utf8');
  }

  /** Writes the message itself, without its tool responses. */
  carrier(node: NodeWord, defaultRole: Literal, out: Writer, placement: Placement, otherFinish: NodeWord): void {
    this.#read(node);
    this.#write(node, defaultRole, out, placement, otherFinish);
  }

  /** Writes the message read last. */
  #write(node: NodeWord, defaultRole: Literal, out: Writer, placement: Placement, otherFinish: NodeWord): void {
    const docs = this.#docs;
    const kinds = this.#kinds;
    const content = this.#text;
    const list = this.#list;
    const calls = this.#callList;
    const name = this.#name;
    const others = this.#others;
    let finish = this.#finish;
    let toolCallId = this.#toolCallId;
    const isToolEvent = placement.idIsCall && this.#hasToolRole(node, defaultRole);
    if (isToolEvent && toolCallId === 0 && this.#id !== 0) toolCallId = this.nodes.filled(this.#id);
    this.head(this.#role, defaultRole, out);
    if (list !== 0) this.parts.content(list, kinds, out, placement);
    else if (content === 0 || docs.type(content) === Node.Null || this.#isEmptyArray(content)) {
      if (!placement.inChoice) out.literal(this.#l.contentNull);
    } else {
      out.literal(this.#l.contentIs);
      // what a tool answered is text, whatever it looked like
      if (this.#hasToolRole(node, defaultRole)) this.nodes.stringOrSlice(content, out);
      else docs.copy(content, out);
    }
    const hasCalls = calls !== 0 || (kinds & (1 << PartKind.ToolCall)) !== 0;
    if (hasCalls) this.calls.member(list, calls, out);
    if (name !== 0) {
      out.literal(this.#l.nameIs);
      docs.copy(name, out);
    }
    if (toolCallId !== 0) {
      out.literal(this.#l.toolCallIdIs);
      docs.copy(toolCallId, out);
    }
    if (finish === 0) finish = otherFinish;
    if (finish !== 0) {
      out.literal(this.#l.finishReasonIs);
      docs.copy(finish, out);
    }
    if (others) this.#passThrough(node, out, isToolEvent);
    out.close(CLOSE_OBJECT);
    out.comma();
  }

  #isEmptyArray(node: NodeWord): boolean {
    return this.#docs.type(node) === Node.Array && this.#docs.count(node) === 0;
  }

  /** Members that the normal form does not know, as they are: no nulls, nothing of the event envelope. */
  #passThrough(node: NodeWord, out: Writer, withoutId: boolean): void {
    const docs = this.#docs;
    const w = this.#l.word;
    const stop = docs.next(node);
    for (let key = docs.first(node); key < stop; key = docs.next(docs.value(key))) {
      const value = docs.value(key);
      if (docs.type(value) === Node.Null || !docs.counts(node, key)) continue;
      if (docs.is(key, w.role) || docs.is(key, w.content) || docs.is(key, w.toolCalls) || docs.is(key, w.name))
        continue;
      if (docs.is(key, w.toolCallId) || docs.is(key, w.finishReason)) continue;
      if (docs.is(key, w.parts) && docs.type(value) === Node.Array) continue;
      if (withoutId && docs.is(key, w.id)) continue;
      if (this.#docs.starts(key, this.#l.eventPrefix) || this.#docs.starts(key, this.#l.genAiPrefix)) continue;
      out.comma();
      docs.copy(key, out);
      out.byte(COLON);
      docs.copy(value, out);
    }
  }
}
