/** OpenInference's indexed messages, with their parts, tool calls and tools, and the completions API's prompts and choices. */
import type { NodeWord } from '../../document.ts';
import { Draft } from '../../draft.ts';
import type { FieldCode } from '../../indexed.ts';
import { ValueType } from '../../kernel/kernel.ts';
import type { Literal } from '../../kernel/kernel.ts';
import { Mark } from '../../keys.ts';
import type { Messages } from '../../messages/messages.ts';
import type { Source, Span } from '../../span.ts';
import type { Toolbox } from '../../toolbox.ts';
import { Loaded } from '../../value.ts';
import type { Writer } from '../../writer.ts';
import type { GenAi } from '../genai.ts';

const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const Field = {
  Role: 1,
  Content: 2,
  Name: 3,
  ToolCallId: 4,
  FunctionName: 5,
  FunctionArguments: 6,
  // of a content part, second number
  PartType: 7,
  PartText: 8,
  PartImage: 9,
  PartAudio: 10,
  PartAudioMime: 11,
  PartTranscript: 12,
  // of a tool call, second number
  CallId: 13,
  CallName: 14,
  CallArguments: 15,
} as const;

const PLAIN_FIELDS: readonly FieldCode[] = [Field.Role, Field.Content, Field.Name, Field.ToolCallId];

const messageFields = (prefix: string): [string, FieldCode][] => [
  [`${prefix}.#.message.role`, Field.Role],
  [`${prefix}.#.message.content`, Field.Content],
  [`${prefix}.#.message.name`, Field.Name],
  [`${prefix}.#.message.tool_call_id`, Field.ToolCallId],
  [`${prefix}.#.message.function_call_name`, Field.FunctionName],
  [`${prefix}.#.message.function_call_arguments_json`, Field.FunctionArguments],
  [`${prefix}.#.message.contents.#.message_content.type`, Field.PartType],
  [`${prefix}.#.message.contents.#.message_content.text`, Field.PartText],
  [`${prefix}.#.message.contents.#.message_content.image.image.url`, Field.PartImage],
  [`${prefix}.#.message.contents.#.message_content.audio.audio.url`, Field.PartAudio],
  [`${prefix}.#.message.contents.#.message_content.audio.audio.mime_type`, Field.PartAudioMime],
  [`${prefix}.#.message.contents.#.message_content.audio.audio.transcript`, Field.PartTranscript],
  [`${prefix}.#.message.tool_calls.#.tool_call.id`, Field.CallId],
  [`${prefix}.#.message.tool_calls.#.tool_call.function.name`, Field.CallName],
  [`${prefix}.#.message.tool_calls.#.tool_call.function.arguments`, Field.CallArguments],
];

export interface IndexedMessages {
  readonly inputs: Source;
  readonly outputs: Source;
  /** Writes `llm.tools.N.tool.json_schema`, normalised, each with a comma. */
  readonly tools: (span: Span, out: Writer) => void;
  /** Whether the completions API's keys are there. */
  readonly isCompletion: (span: Span) => boolean;
}

export function indexedMessages(box: Toolbox, messages: Messages, genAi: GenAi): IndexedMessages {
  const { kernel, keys, docs, values, view, families, lit } = box;
  const draft = new Draft(box);
  const finishReasonKey = keys.key('llm.finish_reason');
  const inputMessages = families.declare(messageFields('llm.input_messages'));
  const outputMessages = families.declare(messageFields('llm.output_messages'));
  const prompts = families.declare([['llm.prompts.#.prompt.text', 1]]);
  const choices = families.declare([['llm.choices.#.completion.text', 1]]);
  const toolFamily = families.declare([['llm.tools.#.tool.json_schema', 1]]);
  const user = lit('"user"');
  const assistant = lit('"assistant"');
  const l = {
    messages: lit('{"messages":['),
    tools: lit(',"tools":['),
    roleIs: lit('"role":'),
    contentIs: lit('"content":'),
    contentArray: lit('"content":['),
    nameIs: lit('"name":'),
    toolCallIdIs: lit('"tool_call_id":'),
    callsIs: lit('"tool_calls":['),
    idIs: lit('"id":'),
    functionIs: lit('"function":{'),
    argumentsIs: lit('"arguments":'),
    finishIs: lit(',"finish_reason":'),
    model: lit('model'),
    typeIs: lit('"type":'),
    textIs: lit('"text":'),
    typeText: lit('"type":"text",'),
    image: lit('{"type":"image_url","image_url":{"url":'),
    noImage: lit('{"type":"image"},'),
    audio: lit('{"type":"audio",'),
    urlIs: lit('"url":'),
    mimeIs: lit('"mime_type":'),
    transcriptIs: lit('"transcript":'),
    closeImage: lit('}},'),
    promptIs: lit('{"prompt":'),
    choicesIs: lit('{"choices":['),
    choice: lit('{"text":'),
    typeImageText: lit('image'),
    typeAudioText: lit('audio'),
    typeTextText: lit('text'),
  };

  const member = (name: Literal, position: number): boolean =>
    position >= 0 && draft.member(name, view.type(position), view.a(position), view.b(position));

  /** Written as a string, whatever it holds. */
  const isPlain = (type: number): boolean => type === ValueType.String || type === ValueType.Bytes;

  const textMember = (name: Literal, position: number): boolean =>
    position >= 0 && draft.text(name, view.type(position), view.a(position), view.b(position));

  const isText = (position: number, text: Literal): boolean =>
    position >= 0 &&
    view.type(position) === ValueType.String &&
    view.b(position) === text.length &&
    kernel.x.equals(view.a(position), text.at, text.length) !== 0;

  /** Drafts a content part, already in the shape that the normal form leaves alone. */
  function draftPart(from: number, to: number): void {
    const type = view.find(from, to, Field.PartType);
    const text = view.find(from, to, Field.PartText);
    const image = view.find(from, to, Field.PartImage);
    const audio = view.find(from, to, Field.PartAudio);
    const out = draft.out;
    if (isText(type, l.typeImageText) || (type < 0 && image >= 0)) {
      if (image < 0 || view.type(image) !== ValueType.String) out.literal(l.noImage);
      else {
        out.literal(l.image);
        out.string(view.a(image), view.b(image));
        out.literal(l.closeImage);
      }
      return;
    }
    if (isText(type, l.typeAudioText) || (type < 0 && audio >= 0)) {
      out.literal(l.audio);
      const filled = (name: Literal, field: number): void => {
        const at = view.find(from, to, field);
        if (at >= 0 && view.filled(at)) member(name, at);
      };
      filled(l.urlIs, Field.PartAudio);
      filled(l.mimeIs, Field.PartAudioMime);
      filled(l.transcriptIs, Field.PartTranscript);
    } else if (type >= 0 && view.type(type) === ValueType.String && !isText(type, l.typeTextText)) {
      out.byte(OPEN_OBJECT);
      member(l.typeIs, type);
      member(l.textIs, text);
    } else {
      if (text < 0) return;
      out.byte(OPEN_OBJECT);
      out.literal(l.typeText);
      member(l.textIs, text);
    }
    out.close(CLOSE_OBJECT);
    out.comma();
  }

  function draftCall(id: number, name: number, args: number): void {
    if (id < 0 && name < 0 && args < 0) return;
    const out = draft.out;
    out.byte(OPEN_OBJECT);
    textMember(l.idIs, id);
    out.literal(l.functionIs);
    textMember(l.nameIs, name);
    if (args >= 0) draft.callArguments(l.argumentsIs, view.type(args), view.a(args), view.b(args));
    out.close(CLOSE_OBJECT);
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  /** Calls back for each second number among the entries of [from, to) whose field is in [low, high]. */
  function bySecond(
    from: number,
    to: number,
    low: number,
    high: number,
    each: (from: number, to: number) => void,
  ): void {
    for (let i = from; i < to;) {
      if (view.field(i) < low || view.field(i) > high) {
        i++;
        continue;
      }
      const second = view.second(i);
      let end = i + 1;
      while (end < to && view.second(end) === second) end++;
      each(i, end);
      i = end;
    }
  }

  const draftIndexedCall = (from: number, to: number): void => {
    draftCall(
      view.find(from, to, Field.CallId),
      view.find(from, to, Field.CallName),
      view.find(from, to, Field.CallArguments),
    );
  };

  function draftMessage(from: number, to: number): void {
    const out = draft.out;
    out.byte(OPEN_OBJECT);
    textMember(l.roleIs, view.find(from, to, Field.Role));
    textMember(l.nameIs, view.find(from, to, Field.Name));
    textMember(l.toolCallIdIs, view.find(from, to, Field.ToolCallId));
    const parts = out.pos;
    out.literal(l.contentArray);
    const firstPart = out.pos;
    bySecond(from, to, Field.PartType, Field.PartTranscript, draftPart);
    if (out.pos > firstPart) {
      out.close(CLOSE_ARRAY);
      out.comma();
    } else {
      out.pos = parts;
      const content = view.find(from, to, Field.Content);
      if (content >= 0 && isPlain(view.type(content))) member(l.contentIs, content);
      else if (content >= 0) draft.document(l.contentIs, view.type(content), view.a(content), view.b(content));
    }
    const calls = out.pos;
    out.literal(l.callsIs);
    const firstCall = out.pos;
    bySecond(from, to, Field.CallId, Field.CallArguments, draftIndexedCall);
    draftCall(-1, view.find(from, to, Field.FunctionName), view.find(from, to, Field.FunctionArguments));
    if (out.pos === firstCall) out.pos = calls;
    else {
      out.close(CLOSE_ARRAY);
      out.comma();
    }
    // a message, though perhaps one of which nothing but its place is known
    const isMessage = PLAIN_FIELDS.some((code) => view.find(from, to, code) >= 0);
    if (!isMessage && kernel.u8[out.pos - 1] === OPEN_OBJECT) {
      out.pos--; // nothing was recognised
      return;
    }
    out.close(CLOSE_OBJECT);
    out.comma();
  }

  /** A message of a role and a text, the most frequent by far, written as it is; false when it is any other. */
  function writePlain(from: number, to: number, defaultRole: Literal, finish: NodeWord, out: Writer): boolean {
    let role = -1;
    let content = -1;
    for (let i = from; i < to; i++) {
      const field = view.field(i);
      if (view.type(i) !== ValueType.String) return false;
      if (field === Field.Role) role = i;
      else if (field === Field.Content) content = i;
      else return false;
    }
    if (content < 0 || isText(role, l.model)) return false;
    out.byte(OPEN_OBJECT);
    out.literal(l.roleIs);
    if (role >= 0 && view.filled(role)) out.string(view.a(role), view.b(role));
    else out.literal(defaultRole);
    out.comma();
    out.literal(l.contentIs);
    out.string(view.a(content), view.b(content));
    if (finish !== 0) {
      out.literal(l.finishIs);
      docs.copy(finish, out);
    }
    out.byte(CLOSE_OBJECT);
    out.comma();
    return true;
  }

  /** Writes the messages of a family, each with a comma; `reasonOf` gives finish reasons by position. */
  function writeMessages(
    family: number,
    span: Span,
    defaultRole: Literal,
    reasonOf: ((span: Span, index: number) => NodeWord) | null,
    out: Writer,
  ): void {
    if ((span.families & family) === 0) return;
    // Finish reasons are loaded before: loading may draft, and so may a message.
    view.select(span.attributes, family);
    let index = 0;
    for (let from = 0; from < view.count;) {
      const to = view.groupEnd(from);
      const finish = reasonOf === null ? 0 : reasonOf(span, index);
      if (!writePlain(from, to, defaultRole, finish, out)) {
        const start = draft.out.pos;
        draftMessage(from, to);
        if (draft.out.pos > start) {
          draft.out.dropComma();
          const message = draft.close(start);
          if (message !== 0) messages.item(message, defaultRole, out, finish);
        }
      }
      index++;
      from = to;
    }
  }

  function tools(span: Span, out: Writer): void {
    if ((span.families & toolFamily) === 0) return;
    view.select(span.attributes, toolFamily);
    for (let i = 0; i < view.count; i++) {
      if (i + 1 < view.count && view.first(i + 1) === view.first(i)) continue; // the last of a number counts
      const loaded = values.load(view.type(i), view.a(i), view.b(i));
      if (loaded === Loaded.Document) messages.tools.definition(values.node, out);
      else if (loaded !== Loaded.Absent) {
        values.copy(loaded, out);
        out.comma();
      }
    }
  }

  /** Writes the texts of a family of single texts, each between `before` and `after`, with a comma. Returns how many. */
  function texts(family: number, span: Span, before: Literal | null, out: Writer): number {
    if ((span.families & family) === 0) return 0;
    view.select(span.attributes, family);
    let count = 0;
    for (let i = 0; i < view.count; i++) {
      if (i + 1 < view.count && view.first(i + 1) === view.first(i)) continue;
      if (view.type(i) === ValueType.String && view.b(i) === 0) continue;
      if (before !== null) out.literal(before);
      values.write(view.type(i), view.a(i), view.b(i), out);
      if (before !== null) out.byte(CLOSE_OBJECT);
      out.comma();
      count++;
    }
    return count;
  }

  const messageInputs: Source = (span, out) => {
    if ((span.marks & Mark.Llm) === 0) return false;
    const start = out.pos;
    out.literal(l.messages);
    const firstMessage = out.pos;
    writeMessages(inputMessages, span, user, null, out);
    if (out.pos > firstMessage) {
      out.close(CLOSE_ARRAY);
      const at = out.pos;
      out.literal(l.tools);
      const first = out.pos;
      tools(span, out);
      if (out.pos === first) out.pos = at;
      else out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    }
    out.pos = start;
    out.literal(l.promptIs);
    const list = out.pos;
    out.byte(OPEN_ARRAY);
    const count = texts(prompts, span, null, out);
    if (count === 0) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    if (count === 1) {
      // a single prompt stands alone: move it over the bracket
      const length = out.pos - list - 2;
      kernel.u8.copyWithin(list, list + 1, list + 1 + length);
      out.pos = list + length;
    }
    out.byte(CLOSE_OBJECT);
    return true;
  };

  /** `llm.finish_reason`, as a document. */
  function ownFinishReason(span: Span): NodeWord {
    const { attributes } = span;
    if (!attributes.hasText(finishReasonKey)) return 0;
    const start = draft.out.pos;
    draft.out.string(attributes.a(finishReasonKey), attributes.b(finishReasonKey));
    return draft.close(start);
  }

  const finishReason = (span: Span, index: number): NodeWord =>
    genAi.finishReason(span, index) || (index === 0 ? ownFinishReason(span) : 0);

  const messageOutputs: Source = (span, out) => {
    if ((span.marks & Mark.Llm) === 0) return false;
    const start = out.pos;
    out.literal(l.messages);
    const firstMessage = out.pos;
    writeMessages(outputMessages, span, assistant, finishReason, out);
    if (out.pos > firstMessage) {
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    }
    out.pos = start;
    out.literal(l.choicesIs);
    if (texts(choices, span, l.choice, out) === 0) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  };

  return {
    inputs: messageInputs,
    outputs: messageOutputs,
    tools,
    isCompletion: (span) => (span.families & (prompts | choices)) !== 0,
  };
}
