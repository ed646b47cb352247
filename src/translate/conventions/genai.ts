/**
 * OpenTelemetry GenAI semantic conventions.
 *
 * | Attributes                                                                    | Inputs                       | Outputs |
 * | ----------------------------------------------------------------------------- | ---------------------------- | ------- |
 * | `gen_ai.input.messages`, `gen_ai.system_instructions`, `gen_ai.tool.definitions` | `{"messages", "tools"?}`  |         |
 * | `gen_ai.output.messages`                                                      |                              | `{"messages"}` |
 * | `gen_ai.prompt.N.*` / `gen_ai.completion.N.*`                                 | `{"messages"}`               | `{"messages"}` |
 * | `gen_ai.prompt` / `gen_ai.completion` (JSON or text)                          | as wrapped                   | as wrapped |
 * | `gen_ai.tool.call.arguments`, `tool_arguments` / `….result`, `tool_response`  | as wrapped                   | as wrapped |
 * | `gen_ai.retrieval.query.text` / `gen_ai.retrieval.documents`                  | `{"query"}`                  | `{"documents"}` |
 */
import type { Attributes } from '../attributes.ts';
import { Node } from '../document.ts';
import type { NodeWord } from '../document.ts';
import { Draft } from '../draft.ts';
import { IN_MESSAGES } from '../messages/kinds.ts';
import type { Messages } from '../messages/messages.ts';
import type { FieldCode } from '../indexed.ts';
import { ValueType } from '../kernel/kernel.ts';
import { Group } from '../keys.ts';
import type { Source, Span } from '../span.ts';
import type { Toolbox } from '../toolbox.ts';
import { Loaded } from '../value.ts';
import type { Wrapping } from '../wrap.ts';
import type { Writer } from '../writer.ts';

const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const Field = {
  Role: 1,
  Content: 2,
  Name: 3,
  ToolCallId: 4,
  FinishReason: 5,
  Refusal: 6,
  User: 7,
  MessageRole: 8,
  MessageContent: 9,
  CallId: 10,
  CallName: 11,
  CallArguments: 12,
  CallType: 13,
  CallFunctionName: 14,
  CallFunctionArguments: 15,
} as const;

const NAMING: readonly FieldCode[] = [Field.Name, Field.ToolCallId, Field.FinishReason];

const messageFields = (prefix: string): [string, FieldCode][] => [
  [`${prefix}.#.role`, Field.Role],
  [`${prefix}.#.content`, Field.Content],
  [`${prefix}.#.name`, Field.Name],
  [`${prefix}.#.tool_call_id`, Field.ToolCallId],
  [`${prefix}.#.finish_reason`, Field.FinishReason],
  [`${prefix}.#.refusal`, Field.Refusal],
  [`${prefix}.#.user`, Field.User],
  [`${prefix}.#.message.role`, Field.MessageRole],
  [`${prefix}.#.message.content`, Field.MessageContent],
  [`${prefix}.#.tool_calls.#.id`, Field.CallId],
  [`${prefix}.#.tool_calls.#.name`, Field.CallName],
  [`${prefix}.#.tool_calls.#.arguments`, Field.CallArguments],
  [`${prefix}.#.tool_calls.#.type`, Field.CallType],
  [`${prefix}.#.tool_calls.#.function.name`, Field.CallFunctionName],
  [`${prefix}.#.tool_calls.#.function.arguments`, Field.CallFunctionArguments],
];

export interface GenAi {
  /** Rows 1 and 2: the same keys on the span or on the operation details event. */
  readonly structuredInputs: (attributes: Attributes, span: Span, out: Writer) => boolean;
  readonly structuredOutputs: (attributes: Attributes, span: Span, out: Writer) => boolean;
  readonly indexedInputs: Source;
  readonly indexedOutputs: Source;
  readonly legacyInputs: Source;
  readonly legacyOutputs: Source;
  readonly toolInputs: Source;
  readonly toolOutputs: Source;
  readonly retrievalInputs: Source;
  readonly retrievalOutputs: Source;
  /** `{"messages":[system message]}` when nothing else gave inputs. */
  readonly instructionInputs: Source;
  /** Writes system messages, each with a comma. */
  instructions(node: NodeWord, out: Writer): void;
  instructionsOf(attributes: Attributes, out: Writer): void;
  /** Writes a span's tool definitions, each with a comma. */
  toolDefinitions(attributes: Attributes, out: Writer): void;
  /** A finish reason for output message `index`, or 0. */
  finishReason(span: Span, index: number): NodeWord;
}

export function genAi(box: Toolbox, messages: Messages, wrapping: Wrapping): GenAi {
  const { keys, docs, values, view, families, lit, scratch } = box;
  const draft = new Draft(box);
  const key = {
    input: keys.key('gen_ai.input.messages', Group.Structured),
    output: keys.key('gen_ai.output.messages', Group.Structured),
    instructions: keys.key('gen_ai.system_instructions', Group.Instructions),
    definitions: keys.key('gen_ai.tool.definitions', Group.Tools),
    reasons: keys.key('gen_ai.response.finish_reasons'),
    reason: keys.key('gen_ai.response.finish_reason'),
    prompt: keys.key('gen_ai.prompt', Group.Legacy),
    completion: keys.key('gen_ai.completion', Group.Legacy),
    callArguments: keys.key('gen_ai.tool.call.arguments', Group.ToolCall),
    toolArguments: keys.key('tool_arguments', Group.ToolCall),
    callResult: keys.key('gen_ai.tool.call.result', Group.ToolCall),
    toolResponse: keys.key('tool_response', Group.ToolCall),
    query: keys.key('gen_ai.retrieval.query.text', Group.Retrieval),
    documents: keys.key('gen_ai.retrieval.documents', Group.Retrieval),
  };
  const prompts = families.declare(messageFields('gen_ai.prompt'));
  const completions = families.declare(messageFields('gen_ai.completion'));
  const user = lit('"user"');
  const assistant = lit('"assistant"');
  const system = lit('"system"');
  const l = {
    role: lit('role'),
    messages: lit('{"messages":['),
    tools: lit(',"tools":['),
    roleIs: lit('"role":'),
    roleUser: lit('"role":"user",'),
    contentIs: lit('"content":'),
    nameIs: lit('"name":'),
    toolCallIdIs: lit('"tool_call_id":'),
    finishIs: lit('"finish_reason":'),
    refusalIs: lit('"refusal":'),
    callsIs: lit('"tool_calls":['),
    idIs: lit('"id":'),
    typeIs: lit('"type":'),
    functionIs: lit('"function":{'),
    argumentsIs: lit('"arguments":'),
    queryIs: lit('{"query":'),
    documentsName: lit('documents'),
    documentsIs: lit('{"documents":['),
    document: lit('{"type":"Document","page_content":'),
    noContent: lit('""'),
    metadataIs: lit(',"metadata":{'),
    pageContent: lit('page_content'),
    content: lit('content'),
    text: lit('text'),
    type: lit('type'),
    metadata: lit('metadata'),
    closeDocument: lit('}},'),
    systemOpen: lit('{"role":"system","content":'),
    assistantRole: lit('{"role":"assistant","content":'),
  };

  const isMessage = (node: NodeWord): boolean => docs.type(node) === Node.Object && docs.member(node, l.role) !== 0;

  function instructions(node: NodeWord, out: Writer): void {
    switch (docs.type(node)) {
      case Node.Array:
        if (docs.everyHas(node, l.role)) messages.items(node, system, out);
        else messages.ofParts(node, system, out);
        return;
      case Node.Object:
        if (isMessage(node)) messages.message(node, system, out, IN_MESSAGES, 0);
        else {
          const start = draft.out.pos;
          draft.out.byte(OPEN_ARRAY);
          docs.copySource(node, draft.out);
          draft.out.byte(CLOSE_ARRAY);
          const list = draft.close(start);
          if (list !== 0) messages.ofParts(list, system, out);
        }
        return;
      case Node.Null:
        return;
      default:
        if (docs.type(node) === Node.String && messages.nodes.filled(node) === 0) return;
        out.literal(l.systemOpen);
        messages.nodes.stringOrSlice(node, out);
        out.byte(CLOSE_OBJECT);
        out.comma();
    }
  }

  function instructionsOf(attributes: Attributes, out: Writer): void {
    const loaded = values.loadKey(attributes, key.instructions);
    if (loaded === Loaded.Absent) return;
    if (loaded === Loaded.Document) {
      instructions(values.node, out);
      return;
    }
    out.literal(l.systemOpen);
    values.copyAsString(loaded, out);
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  function toolDefinitions(attributes: Attributes, out: Writer): void {
    if (values.loadKey(attributes, key.definitions) !== Loaded.Document) return;
    if (docs.type(values.node) === Node.Array) messages.tools.definitions(values.node, out);
  }

  function loadReasons(span: Span): void {
    span.reasonsKnown = true;
    span.reasons = 0;
    span.reason = 0;
    if (values.loadKey(span.attributes, key.reasons) === Loaded.Document) span.reasons = values.node;
    const loaded = values.loadKey(span.attributes, key.reason);
    if (loaded === Loaded.Document) span.reason = values.node;
    else if (loaded === Loaded.Text) {
      const start = scratch.pos;
      scratch.string(values.at, values.length);
      const end = scratch.pos;
      scratch.align();
      span.reason = docs.parse(start, end - start);
    }
  }

  function element(array: NodeWord, index: number): NodeWord {
    if (array === 0) return 0;
    if (docs.type(array) === Node.String) return index === 0 ? messages.nodes.filled(array) : 0;
    if (docs.type(array) !== Node.Array || index >= docs.count(array)) return 0;
    let item = docs.first(array);
    for (let i = 0; i < index; i++) item = docs.next(item);
    return messages.nodes.filled(item);
  }

  function finishReason(span: Span, index: number): NodeWord {
    if (!span.reasonsKnown) loadReasons(span);
    if (span.reasons === 0 && span.reason === 0) return 0;
    const several = span.reasons !== 0 && docs.type(span.reasons) === Node.Array ? span.reasons : 0;
    return element(several, index) || element(span.reason, index);
  }

  /** Writes output messages, finish reasons added where they have none. */
  function outputItems(array: NodeWord, span: Span, out: Writer): void {
    let index = 0;
    const stop = docs.next(array);
    for (let item = docs.first(array); item < stop; item = docs.next(item)) {
      messages.item(item, assistant, out, finishReason(span, index++));
    }
  }

  function structuredInputs(attributes: Attributes, span: Span, out: Writer): boolean {
    const loaded = values.loadKey(attributes, key.input);
    if (loaded === Loaded.Absent) return false;
    const node = values.node;
    const list = loaded === Loaded.Document && docs.type(node) === Node.Array;
    if (!list && !(loaded === Loaded.Document && isMessage(node))) return wrapping.write(loaded, 'input', span, out);
    const start = out.pos;
    out.literal(l.messages);
    instructionsOf(attributes, out);
    const first = out.pos;
    if (list) messages.items(node, user, out);
    else messages.message(node, user, out, IN_MESSAGES, 0);
    if (out.pos === first) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    const tools = out.pos;
    out.literal(l.tools);
    const firstTool = out.pos;
    toolDefinitions(attributes, out);
    if (out.pos === firstTool) out.pos = tools;
    else out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  }

  function structuredOutputs(attributes: Attributes, span: Span, out: Writer): boolean {
    const loaded = values.loadKey(attributes, key.output);
    if (loaded === Loaded.Absent) return false;
    const node = values.node;
    const list = loaded === Loaded.Document && docs.type(node) === Node.Array;
    if (!list && !(loaded === Loaded.Document && isMessage(node))) return wrapping.write(loaded, 'output', span, out);
    const start = out.pos;
    out.literal(l.messages);
    const first = out.pos;
    if (list) outputItems(node, span, out);
    else messages.message(node, assistant, out, IN_MESSAGES, finishReason(span, 0));
    if (out.pos === first) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  }

  /** Drafts the tool calls of a group of entries. */
  function draftCalls(from: number, to: number): void {
    const at = draft.out.pos;
    draft.out.literal(l.callsIs);
    const first = draft.out.pos;
    for (let i = from; i < to;) {
      if (view.field(i) < Field.CallId) {
        i++;
        continue;
      }
      const second = view.second(i);
      let end = i + 1;
      while (end < to && (view.second(end) === second || view.field(end) < Field.CallId)) end++;
      draftCall(i, end);
      i = end;
    }
    if (draft.out.pos === first) draft.out.pos = at;
    else {
      draft.out.close(CLOSE_ARRAY);
      draft.out.comma();
    }
  }

  function draftCall(from: number, to: number): void {
    const write = (name: typeof l.idIs, position: number): void => {
      if (position >= 0) draft.text(name, view.type(position), view.a(position), view.b(position));
    };
    const either = (one: FieldCode, other: FieldCode): number => {
      const found = view.find(from, to, one);
      return found >= 0 ? found : view.find(from, to, other);
    };
    draft.out.byte(OPEN_OBJECT);
    write(l.idIs, view.find(from, to, Field.CallId));
    write(l.typeIs, view.find(from, to, Field.CallType));
    draft.out.literal(l.functionIs);
    write(l.nameIs, either(Field.CallName, Field.CallFunctionName));
    const args = either(Field.CallArguments, Field.CallFunctionArguments);
    if (args >= 0) draft.callArguments(l.argumentsIs, view.type(args), view.a(args), view.b(args));
    draft.out.close(CLOSE_OBJECT);
    draft.out.byte(CLOSE_OBJECT);
    draft.out.comma();
  }

  const anyOf = (from: number, to: number, codes: readonly FieldCode[]): boolean =>
    codes.some((code) => view.find(from, to, code) >= 0);

  /** Drafts one message of an indexed family. */
  function draftMessage(from: number, to: number): void {
    draft.out.byte(OPEN_OBJECT);
    const either = (one: FieldCode, other: FieldCode): number => {
      const found = view.find(from, to, one);
      return found >= 0 ? found : view.find(from, to, other);
    };
    const plain = (name: typeof l.roleIs, position: number): void => {
      if (position >= 0) draft.text(name, view.type(position), view.a(position), view.b(position));
    };
    const role = either(Field.Role, Field.MessageRole);
    const content = either(Field.Content, Field.MessageContent);
    const asUser = view.find(from, to, Field.User);
    const haystack = content < 0 && asUser >= 0 && view.type(asUser) === ValueType.String;
    if (role >= 0) plain(l.roleIs, role);
    else if (haystack) draft.out.literal(l.roleUser);
    const text = content >= 0 ? content : haystack ? asUser : -1;
    const hasContent = text >= 0 && draft.content(l.contentIs, view.type(text), view.a(text), view.b(text));
    plain(l.nameIs, view.find(from, to, Field.Name));
    plain(l.toolCallIdIs, view.find(from, to, Field.ToolCallId));
    plain(l.finishIs, view.find(from, to, Field.FinishReason));
    const refusal = view.find(from, to, Field.Refusal);
    if (refusal >= 0 && !(view.type(refusal) === ValueType.String && view.b(refusal) === 0)) {
      draft.member(l.refusalIs, view.type(refusal), view.a(refusal), view.b(refusal));
    }
    draftCalls(from, to);
    // a message, though perhaps one of which nothing but its place is known
    const isMessageAtAll = role >= 0 || hasContent || anyOf(from, to, NAMING);
    if (!isMessageAtAll && draft.out.kernel.u8[draft.out.pos - 1] === OPEN_OBJECT) {
      draft.out.pos--; // nothing was recognised
      return;
    }
    draft.out.close(CLOSE_OBJECT);
    draft.out.comma();
  }

  function draftMessages(family: number, span: Span): NodeWord {
    if ((span.families & family) === 0) return 0;
    view.select(span.attributes, family);
    const start = draft.out.pos;
    draft.out.byte(OPEN_ARRAY);
    for (let from = 0; from < view.count;) {
      const to = view.groupEnd(from);
      draftMessage(from, to);
      from = to;
    }
    draft.out.close(CLOSE_ARRAY);
    const array = draft.close(start);
    return array !== 0 && docs.count(array) > 0 ? array : 0;
  }

  /** One row of the GenAI tables that is a document or text under a single key. */
  const wrapped =
    (side: 'input' | 'output', ...names: number[]): Source =>
    (span, out) => {
      for (const name of names) {
        if (wrapping.write(values.loadKey(span.attributes, name), side, span, out)) return true;
      }
      return false;
    };

  /** An item of `gen_ai.retrieval.documents`: what is not its text is metadata. */
  function looseDocument(item: NodeWord, out: Writer): void {
    const type = docs.type(item);
    if (type !== Node.String && type !== Node.Object) return;
    out.literal(l.document);
    if (type === Node.String) {
      docs.copy(item, out);
      out.literal(l.metadataIs);
      out.literal(l.closeDocument);
      return;
    }
    const named = [l.pageContent, l.content, l.text].find(
      (name) => messages.nodes.string(docs.member(item, name)) !== 0,
    );
    if (named === undefined) out.literal(l.noContent);
    else docs.copy(docs.member(item, named), out);
    out.literal(l.metadataIs);
    const inner = docs.member(item, l.metadata);
    const hasInner = inner !== 0 && docs.type(inner) === Node.Object;
    const stop = docs.next(item);
    for (let name = docs.first(item); name < stop; name = docs.next(docs.value(name))) {
      if (!docs.counts(item, name)) continue;
      if ((named !== undefined && docs.is(name, named)) || docs.is(name, l.type)) continue;
      if (hasInner && docs.is(name, l.metadata)) continue;
      docs.copy(name, out);
      out.byte(0x3a);
      docs.copy(docs.value(name), out);
      out.comma();
    }
    if (hasInner) innerMetadata(inner, item, named, out);
    out.dropComma();
    out.literal(l.closeDocument);
  }

  /** Members of a document's own metadata, unless the document has a member of that name beside it. */
  function innerMetadata(inner: NodeWord, item: NodeWord, named: typeof l.text | undefined, out: Writer): void {
    const stop = docs.next(inner);
    for (let name = docs.first(inner); name < stop; name = docs.next(docs.value(name))) {
      if (!docs.counts(inner, name)) continue;
      const beside = docs.memberLike(item, name);
      const counts =
        beside !== 0 &&
        !(named !== undefined && docs.is(name, named)) &&
        !docs.is(name, l.type) &&
        !docs.is(name, l.metadata);
      if (counts) continue;
      docs.copy(name, out);
      out.byte(0x3a);
      docs.copy(docs.value(name), out);
      out.comma();
    }
  }

  const indexedInputs: Source = (span, out) => {
    const array = draftMessages(prompts, span);
    if (array === 0) return false;
    out.literal(l.messages);
    messages.items(array, user, out);
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  };

  return {
    structuredInputs,
    structuredOutputs,
    indexedInputs,
    indexedOutputs: (span, out) => {
      const array = draftMessages(completions, span);
      if (array === 0) return false;
      out.literal(l.messages);
      outputItems(array, span, out);
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    },
    legacyInputs: wrapped('input', key.prompt),
    legacyOutputs: wrapped('output', key.completion),
    toolInputs: wrapped('input', key.callArguments, key.toolArguments),
    toolOutputs: wrapped('output', key.callResult, key.toolResponse),
    retrievalInputs: (span, out) => {
      const { attributes } = span;
      const type = attributes.type(key.query);
      if (type === ValueType.Absent || (type === ValueType.String && !attributes.hasText(key.query))) return false;
      out.literal(l.queryIs);
      values.write(type, attributes.a(key.query), attributes.b(key.query), out);
      out.byte(CLOSE_OBJECT);
      return true;
    },
    retrievalOutputs: (span, out) => {
      const loaded = values.loadKey(span.attributes, key.documents);
      if (loaded === Loaded.Absent) return false;
      let list = values.node;
      if (loaded === Loaded.Document && docs.type(list) === Node.Object) {
        const own = docs.member(list, l.documentsName);
        if (own !== 0 && docs.type(own) === Node.Array) list = own;
      }
      if (loaded !== Loaded.Document || docs.type(list) !== Node.Array)
        return wrapping.write(loaded, 'output', span, out);
      out.literal(l.documentsIs);
      const stop = docs.next(list);
      for (let item = docs.first(list); item < stop; item = docs.next(item)) looseDocument(item, out);
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    },
    instructionInputs: (span, out) => {
      const start = out.pos;
      out.literal(l.messages);
      const first = out.pos;
      instructionsOf(span.attributes, out);
      if (out.pos === first) {
        out.pos = start;
        return false;
      }
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    },
    instructions,
    instructionsOf,
    toolDefinitions,
    finishReason,
  };
}
