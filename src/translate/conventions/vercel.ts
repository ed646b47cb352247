/**
 * Vercel AI SDK, `ai.*` (versions 4 to 6, and 7 with its legacy integration; 7's default is pure GenAI).
 *
 * | Attributes                                                      | Inputs                                | Outputs |
 * | --------------------------------------------------------------- | ------------------------------------- | ------- |
 * | `ai.prompt.messages`                                            | `{"messages"}`                        | |
 * | `ai.prompt` = `{system?, prompt?, messages?}`                   | `{"messages"}`                        | |
 * | `ai.toolCall.args`, `ai.value` / `ai.response.object`, `ai.toolCall.result` | as wrapped                | as wrapped |
 * | `ai.values`, `ai.documents` / `ai.embeddings`, `ai.embedding`, `ai.ranking` | `{"input"}`, `{"documents"}` | `{"embeddings"}`, `{"ranking"}` |
 * | `ai.response.{reasoning,text,files,toolCalls,finishReason}`     |                                       | one assistant message |
 */
import { Node } from '../document.ts';
import type { NodeWord } from '../document.ts';
import { Draft } from '../draft.ts';
import { ValueType } from '../kernel/kernel.ts';
import type { Literal } from '../kernel/kernel.ts';
import { Group, Mark } from '../keys.ts';
import { IN_MESSAGES } from '../messages/kinds.ts';
import type { Messages } from '../messages/messages.ts';
import type { Source, Span } from '../span.ts';
import type { Toolbox } from '../toolbox.ts';
import { Loaded } from '../value.ts';
import type { Wrapping } from '../wrap.ts';
import type { Writer } from '../writer.ts';
import type { GenAi } from './genai.ts';

const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

export interface Vercel {
  readonly inputs: Source;
  readonly outputs: Source;
  /** Writes `ai.prompt.tools`, normalised, each with a comma. */
  tools(span: Span, out: Writer): void;
}

export function vercel(box: Toolbox, messages: Messages, wrapping: Wrapping, genAi: GenAi): Vercel {
  const { keys, docs, values, lit } = box;
  const draft = new Draft(box);
  const key = {
    promptMessages: keys.key('ai.prompt.messages'),
    prompt: keys.key('ai.prompt'),
    promptTools: keys.key('ai.prompt.tools', Group.Tools),
    callArgs: keys.key('ai.toolCall.args'),
    callResult: keys.key('ai.toolCall.result'),
    value: keys.key('ai.value'),
    values: keys.key('ai.values'),
    documents: keys.key('ai.documents'),
    text: keys.key('ai.response.text'),
    reasoning: keys.key('ai.response.reasoning'),
    files: keys.key('ai.response.files'),
    toolCalls: keys.key('ai.response.toolCalls'),
    finishReason: keys.key('ai.response.finishReason'),
    object: keys.key('ai.response.object'),
    embeddings: keys.key('ai.embeddings'),
    embedding: keys.key('ai.embedding'),
    ranking: keys.key('ai.ranking'),
  };
  const user = lit('"user"');
  const assistant = lit('"assistant"');
  const l = {
    messages: lit('{"messages":['),
    userMessage: lit('{"role":"user","content":'),
    system: lit('system'),
    prompt: lit('prompt'),
    messagesName: lit('messages'),
    input: lit('{"input":['),
    documents: lit('{"documents":['),
    embeddings: lit('{"embeddings":['),
    ranking: lit('{"ranking":['),
    assistantParts: lit('{"role":"assistant","parts":['),
    reasoningPart: lit('{"type":"reasoning","text":'),
    textPart: lit('{"type":"text","text":'),
    typeToolCall: lit('"type":"tool-call"'),
    type: lit('type'),
    finishIs: lit(',"finish_reason":'),
    nullIs: lit('null'),
  };

  function wrapped(name: number, side: 'input' | 'output', span: Span, out: Writer): boolean {
    return wrapping.write(values.loadKey(span.attributes, name), side, span, out);
  }

  /** An array whose items are documents in strings: `{"…":[…]}`; false when there is none. */
  function items(name: number, open: Literal, span: Span, out: Writer): boolean {
    if (values.loadKey(span.attributes, name) !== Loaded.Document) return false;
    const array = values.node;
    if (docs.type(array) !== Node.Array || docs.count(array) === 0) return false;
    out.literal(open);
    const stop = docs.next(array);
    for (let item = docs.first(array); item < stop; item = docs.next(item)) {
      writeItem(item, out);
      out.comma();
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  }

  /** An item as the document that its string holds; blank strings and JSON null as null. */
  function writeItem(item: NodeWord, out: Writer): void {
    if (docs.type(item) !== Node.String) {
      docs.copy(item, out);
      return;
    }
    const inner = messages.nodes.parseString(item);
    if (inner !== 0) docs.copy(inner, out);
    else if (messages.nodes.isBlank(item)) out.literal(l.nullIs);
    else docs.copy(item, out);
  }

  function promptInputs(span: Span, out: Writer): boolean {
    const loaded = values.loadKey(span.attributes, key.prompt);
    if (loaded === Loaded.Absent) return false;
    const prompt = values.node;
    if (loaded === Loaded.Document && docs.type(prompt) === Node.Object) {
      const start = out.pos;
      out.literal(l.messages);
      const first = out.pos;
      const system = docs.member(prompt, l.system);
      if (system !== 0) genAi.instructions(system, out);
      const text = docs.member(prompt, l.prompt);
      if (text !== 0 && docs.type(text) === Node.String) {
        out.literal(l.userMessage);
        docs.copy(text, out);
        out.byte(CLOSE_OBJECT);
        out.comma();
      } else if (text !== 0 && docs.type(text) === Node.Array) messages.items(text, user, out);
      const list = docs.member(prompt, l.messagesName);
      if (list !== 0 && docs.type(list) === Node.Array) messages.items(list, user, out);
      if (out.pos > first) {
        out.close(CLOSE_ARRAY);
        out.byte(CLOSE_OBJECT);
        return true;
      }
      out.pos = start;
    }
    return wrapped(key.prompt, 'input', span, out);
  }

  function messageInputs(span: Span, out: Writer): boolean {
    const loaded = values.loadKey(span.attributes, key.promptMessages);
    if (loaded === Loaded.Absent) return false;
    const list = values.node;
    if (loaded !== Loaded.Document || docs.type(list) !== Node.Array) {
      return wrapping.write(loaded, 'input', span, out);
    }
    const start = out.pos;
    out.literal(l.messages);
    const first = out.pos;
    messages.items(list, user, out);
    if (out.pos === first) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  }

  /** Drafts `{"type":…,"text":…},` from an attribute that is text, or the source of what it is. */
  function draftTextPart(open: Literal, name: number, span: Span): void {
    const { attributes } = span;
    const type = attributes.type(name);
    if (type === ValueType.Absent) return;
    if (type === ValueType.String && attributes.b(name) === 0) return;
    draft.out.literal(open);
    if (type === ValueType.String) draft.out.string(attributes.a(name), attributes.b(name));
    else {
      const loaded = values.load(type, attributes.a(name), attributes.b(name));
      if (loaded === Loaded.Absent) draft.out.literal(l.nullIs);
      else values.copyAsString(loaded, draft.out);
    }
    draft.out.byte(CLOSE_OBJECT);
    draft.out.comma();
  }

  function draftFiles(span: Span): void {
    if (values.loadKey(span.attributes, key.files) !== Loaded.Document) return;
    if (docs.type(values.node) !== Node.Array) return;
    const stop = docs.next(values.node);
    for (let item = docs.first(values.node); item < stop; item = docs.next(item)) {
      docs.copySource(item, draft.out);
      draft.out.comma();
    }
  }

  function draftToolCalls(span: Span): void {
    const loaded = values.loadKey(span.attributes, key.toolCalls);
    if (loaded === Loaded.Absent) return;
    const calls = values.node;
    if (loaded !== Loaded.Document || docs.type(calls) !== Node.Array) {
      draftTextPart(l.textPart, key.toolCalls, span);
      return;
    }
    const stop = docs.next(calls);
    for (let call = docs.first(calls); call < stop; call = docs.next(call)) {
      if (docs.type(call) === Node.Object) {
        draft.out.byte(OPEN_OBJECT);
        const end = docs.next(call);
        for (let name = docs.first(call); name < end; name = docs.next(docs.value(name))) {
          if (!docs.counts(call, name)) continue;
          if (docs.is(name, l.type)) continue;
          docs.copySource(name, draft.out);
          draft.out.byte(0x3a);
          docs.copySource(docs.value(name), draft.out);
          draft.out.comma();
        }
        draft.out.literal(l.typeToolCall);
        draft.out.byte(CLOSE_OBJECT);
        draft.out.comma();
      }
    }
  }

  /** Text, reasoning, files and tool calls are one assistant message. */
  function responseOutputs(span: Span, out: Writer): boolean {
    const { attributes } = span;
    if (
      !attributes.has(key.text) &&
      !attributes.has(key.toolCalls) &&
      !attributes.has(key.reasoning) &&
      !attributes.has(key.files)
    )
      return false;
    const start = draft.out.pos;
    draft.out.literal(l.assistantParts);
    const first = draft.out.pos;
    draftTextPart(l.reasoningPart, key.reasoning, span);
    draftTextPart(l.textPart, key.text, span);
    draftFiles(span);
    draftToolCalls(span);
    if (draft.out.pos === first) {
      draft.out.pos = start;
      return false;
    }
    draft.out.close(CLOSE_ARRAY);
    draft.out.byte(CLOSE_OBJECT);
    const message = draft.close(start);
    if (message === 0) return false;
    out.literal(l.messages);
    messages.carrier(message, assistant, out, IN_MESSAGES, 0);
    out.pos -= 2; // the brace and comma
    if (attributes.hasText(key.finishReason)) {
      out.literal(l.finishIs);
      out.string(attributes.a(key.finishReason), attributes.b(key.finishReason));
    } else {
      const reason = genAi.finishReason(span, 0);
      if (reason !== 0) {
        out.literal(l.finishIs);
        docs.copy(reason, out);
      }
    }
    out.byte(CLOSE_OBJECT);
    out.byte(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  }

  function embeddingOutputs(span: Span, out: Writer): boolean {
    const loaded = values.loadKey(span.attributes, key.embedding);
    if (loaded === Loaded.Absent) return false;
    out.literal(l.embeddings);
    values.copy(loaded, out);
    out.byte(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  }

  return {
    inputs: (span, out) =>
      (span.marks & Mark.Ai) !== 0 &&
      (messageInputs(span, out) ||
        promptInputs(span, out) ||
        wrapped(key.callArgs, 'input', span, out) ||
        wrapped(key.value, 'input', span, out) ||
        items(key.values, l.input, span, out) ||
        items(key.documents, l.documents, span, out)),
    outputs: (span, out) =>
      (span.marks & Mark.Ai) !== 0 &&
      (responseOutputs(span, out) ||
        wrapped(key.object, 'output', span, out) ||
        wrapped(key.callResult, 'output', span, out) ||
        items(key.embeddings, l.embeddings, span, out) ||
        embeddingOutputs(span, out) ||
        items(key.ranking, l.ranking, span, out)),
    tools: (span, out) => {
      if (values.loadKey(span.attributes, key.promptTools) !== Loaded.Document) return;
      if (docs.type(values.node) !== Node.Array) return;
      const stop = docs.next(values.node);
      for (let item = docs.first(values.node); item < stop; item = docs.next(item)) {
        const inner = docs.type(item) === Node.String ? messages.nodes.parseString(item) : item;
        if (inner !== 0) messages.tools.definition(inner, out);
        else {
          if (messages.nodes.isBlank(item)) out.literal(l.nullIs);
          else docs.copy(item, out);
          out.comma();
        }
      }
    },
  };
}
