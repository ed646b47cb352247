/**
 * OpenInference.
 *
 * | Attributes                                                      | Inputs                             | Outputs |
 * | --------------------------------------------------------------- | ---------------------------------- | ------- |
 * | `llm.input_messages.N.message.*` (+ `llm.tools.N`) / `llm.output_messages…` | `{"messages", "tools"?}` | `{"messages"}` |
 * | `llm.prompts.N.prompt.text` / `llm.choices.N.completion.text`   | `{"prompt"}`                       | `{"choices":[{"text"}]}` |
 * | `llm.prompt_template.variables` on prompt runs                  | as it is                           | |
 * | `input.value` of a retriever / `retrieval.documents.N`          | `{"query"}`                        | `{"documents"}` |
 * | `reranker.query`, `.input_documents.N`, `.top_k` / `.output_documents.N` | `{"query"?,"documents"?,"top_k"?}` | `{"documents"}` |
 * | `embedding.embeddings.N.embedding.text` / `….vector`            | `{"input":[…]}`                    | `{"embeddings":[[…]]}` |
 * | `input.value`, `tool_call.function.arguments` / `output.value`  | as wrapped                         | as wrapped |
 */
import { Node } from '../document.ts';
import type { NodeWord } from '../document.ts';
import { Draft } from '../draft.ts';
import type { FieldCode } from '../indexed.ts';
import { ValueType } from '../kernel/kernel.ts';
import type { Literal } from '../kernel/kernel.ts';
import { Group, Mark } from '../keys.ts';
import type { Messages } from '../messages/messages.ts';
import { RunType } from '../span.ts';
import type { Source, Span } from '../span.ts';
import type { Toolbox } from '../toolbox.ts';
import { Loaded } from '../value.ts';
import type { Wrapping } from '../wrap.ts';
import type { Writer } from '../writer.ts';
import type { GenAi } from './genai.ts';

const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const TEXT_PLAIN = 'text/plain';

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

const DocumentField = { Content: 1, Metadata: 2, Id: 3, Score: 4 } as const;
const documentFields = (prefix: string): [string, FieldCode][] => [
  [`${prefix}.#.document.content`, DocumentField.Content],
  [`${prefix}.#.document.metadata`, DocumentField.Metadata],
  [`${prefix}.#.document.id`, DocumentField.Id],
  [`${prefix}.#.document.score`, DocumentField.Score],
];

const EmbeddingField = { Text: 1, Vector: 2 } as const;

export interface OpenInference {
  readonly templateInputs: Source;
  readonly messageInputs: Source;
  readonly messageOutputs: Source;
  readonly rerankerInputs: Source;
  readonly rerankerOutputs: Source;
  readonly embeddingInputs: Source;
  readonly embeddingOutputs: Source;
  readonly retrieverInputs: Source;
  readonly retrieverOutputs: Source;
  readonly valueInputs: Source;
  readonly valueOutputs: Source;
  /** Writes `llm.tools.N.tool.json_schema`, normalised, each with a comma. */
  tools(span: Span, out: Writer): void;
  /** Whether the completions API's keys are there. */
  isCompletion(span: Span): boolean;
}

export function openInference(box: Toolbox, messages: Messages, wrapping: Wrapping, genAi: GenAi): OpenInference {
  const { kernel, keys, docs, values, view, families, lit } = box;
  const draft = new Draft(box);
  const key = {
    inputValue: keys.key('input.value', Group.Value),
    inputMime: keys.key('input.mime_type'),
    outputValue: keys.key('output.value', Group.Value),
    outputMime: keys.key('output.mime_type'),
    callArguments: keys.key('tool_call.function.arguments', Group.Value),
    variables: keys.key('llm.prompt_template.variables'),
    rerankerQuery: keys.key('reranker.query', Group.Reranker),
    topK: keys.key('reranker.top_k'),
    finishReason: keys.key('llm.finish_reason'),
  };
  const inputMessages = families.declare(messageFields('llm.input_messages'));
  const outputMessages = families.declare(messageFields('llm.output_messages'));
  const prompts = families.declare([['llm.prompts.#.prompt.text', 1]]);
  const choices = families.declare([['llm.choices.#.completion.text', 1]]);
  const toolFamily = families.declare([['llm.tools.#.tool.json_schema', 1]]);
  const retrieved = families.declare(documentFields('retrieval.documents'));
  const reranked = families.declare(documentFields('reranker.output_documents'));
  const toRerank = families.declare(documentFields('reranker.input_documents'));
  const embeddings = families.declare([
    ['embedding.embeddings.#.embedding.text', EmbeddingField.Text],
    ['embedding.embeddings.#.embedding.vector', EmbeddingField.Vector],
  ]);
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
    queryOpen: lit('{"query":'),
    queryIs: lit('"query":'),
    topKIs: lit('"top_k":'),
    documentsOpen: lit('{"documents":['),
    documentsIs: lit('"documents":['),
    document: lit('{"type":"Document","page_content":'),
    noContent: lit('""'),
    metadataIs: lit(',"metadata":{'),
    scoreIs: lit('"score":'),
    rawIs: lit('"raw":'),
    id: lit('id'),
    score: lit('score'),
    query: lit('query'),
    question: lit('question'),
    input: lit('input'),
    inputOpen: lit('{"input":['),
    embeddingsOpen: lit('{"embeddings":['),
    nullIs: lit('null'),
    typeImageText: lit('image'),
    typeAudioText: lit('audio'),
    typeTextText: lit('text'),
  };

  // ---- messages -------------------------------------------------------------------------------------------------

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
    if (!attributes.hasText(key.finishReason)) return 0;
    const start = draft.out.pos;
    draft.out.string(attributes.a(key.finishReason), attributes.b(key.finishReason));
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

  // ---- documents ------------------------------------------------------------------------------------------------

  function writeDocument(from: number, to: number, out: Writer): void {
    const content = view.find(from, to, DocumentField.Content);
    const metadata = view.find(from, to, DocumentField.Metadata);
    const id = view.find(from, to, DocumentField.Id);
    const score = view.find(from, to, DocumentField.Score);
    out.literal(l.document);
    if (content < 0) out.literal(l.noContent);
    else if (view.type(content) === ValueType.String) out.string(view.a(content), view.b(content));
    else {
      const loaded = values.load(view.type(content), view.a(content), view.b(content));
      if (loaded === Loaded.Absent) out.literal(l.noContent);
      else values.copyAsString(loaded, out);
    }
    out.literal(l.metadataIs);
    if (metadata >= 0) writeDocumentMetadata(metadata, id >= 0, score >= 0, out);
    if (id >= 0) {
      out.literal(l.idIs);
      values.write(view.type(id), view.a(id), view.b(id), out);
      out.comma();
    }
    if (score >= 0) {
      out.literal(l.scoreIs);
      values.write(view.type(score), view.a(score), view.b(score), out);
      out.comma();
    }
    out.close(CLOSE_OBJECT);
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  function writeDocumentMetadata(metadata: number, hasId: boolean, hasScore: boolean, out: Writer): void {
    const type = view.type(metadata);
    const a = view.a(metadata);
    const b = view.b(metadata);
    const loaded = values.load(type, a, b);
    if (loaded === Loaded.Absent) return;
    const node = values.loadLenientObject(type, a, b);
    if (node === 0) {
      out.literal(l.rawIs);
      values.write(type, a, b, out);
      out.comma();
      return;
    }
    const stop = docs.next(node);
    for (let name = docs.first(node); name < stop; name = docs.next(docs.value(name))) {
      if (!docs.counts(node, name)) continue;
      if ((hasId && docs.is(name, l.id)) || (hasScore && docs.is(name, l.score))) continue;
      docs.copy(name, out);
      out.byte(0x3a);
      docs.copy(docs.value(name), out);
      out.comma();
    }
  }

  /** Writes a family of documents, each with a comma. */
  function documents(family: number, span: Span, out: Writer): void {
    if ((span.families & family) === 0) return;
    view.select(span.attributes, family);
    for (let from = 0; from < view.count;) {
      const to = view.groupEnd(from);
      writeDocument(from, to, out);
      from = to;
    }
  }

  const documentOutputs =
    (family: number): Source =>
    (span, out) => {
      if ((span.families & family) === 0) return false;
      out.literal(l.documentsOpen);
      documents(family, span, out);
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    };

  const present = (span: Span, name: number): boolean => {
    const type = span.attributes.type(name);
    if (type === ValueType.String) return span.attributes.b(name) > 0;
    return type !== ValueType.Absent;
  };

  const rerankerInputs: Source = (span, out) => {
    const hasQuery = present(span, key.rerankerQuery);
    if (!hasQuery && (span.families & toRerank) === 0) return false;
    const { attributes } = span;
    out.byte(OPEN_OBJECT);
    if (hasQuery) {
      out.literal(l.queryIs);
      values.write(
        attributes.type(key.rerankerQuery),
        attributes.a(key.rerankerQuery),
        attributes.b(key.rerankerQuery),
        out,
      );
      out.comma();
    }
    if ((span.families & toRerank) !== 0) {
      out.literal(l.documentsIs);
      documents(toRerank, span, out);
      out.close(CLOSE_ARRAY);
      out.comma();
    }
    if (present(span, key.topK)) {
      out.literal(l.topKIs);
      values.write(attributes.type(key.topK), attributes.a(key.topK), attributes.b(key.topK), out);
      out.comma();
    }
    out.close(CLOSE_OBJECT);
    return true;
  };

  // ---- embeddings -----------------------------------------------------------------------------------------------

  const embeddingInputs: Source = (span, out) => {
    if ((span.families & embeddings) === 0) return false;
    view.select(span.attributes, embeddings);
    const start = out.pos;
    out.literal(l.inputOpen);
    const first = out.pos;
    for (let from = 0; from < view.count;) {
      const to = view.groupEnd(from);
      const text = view.find(from, to, EmbeddingField.Text);
      if (text >= 0 && !(view.type(text) === ValueType.String && view.b(text) === 0)) {
        values.write(view.type(text), view.a(text), view.b(text), out);
        out.comma();
      }
      from = to;
    }
    if (out.pos === first) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  };

  const embeddingOutputs: Source = (span, out) => {
    if ((span.families & embeddings) === 0) return false;
    view.select(span.attributes, embeddings);
    const start = out.pos;
    out.literal(l.embeddingsOpen);
    const first = out.pos;
    for (let from = 0; from < view.count;) {
      const to = view.groupEnd(from);
      const vector = view.find(from, to, EmbeddingField.Vector);
      if (vector >= 0 && !(view.type(vector) === ValueType.String && view.b(vector) === 0)) {
        const loaded = values.load(view.type(vector), view.a(vector), view.b(vector));
        if (loaded === Loaded.Absent) out.literal(l.nullIs);
        else values.copy(loaded, out);
        out.comma();
      }
      from = to;
    }
    if (out.pos === first) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    // the whole response, where it is there as an object, says more than its vectors
    const loaded = loadValue(span, key.outputValue, key.outputMime);
    if (loaded === Loaded.Document && docs.type(values.node) === Node.Object) {
      out.pos = start;
      wrapping.object(values.node, 'output', span, out);
    }
    return true;
  };

  // ---- input.value and output.value -----------------------------------------------------------------------------

  /** Loads `input.value` or `output.value`; a MIME type of plain text keeps it from being read as JSON. */
  function loadValue(span: Span, value: number, mime: number): number {
    const { attributes } = span;
    const type = attributes.type(value);
    if (type === ValueType.Absent) return Loaded.Absent;
    const plain =
      type === ValueType.String && attributes.hasText(mime) && isPlainText(attributes.a(mime), attributes.b(mime));
    return plain
      ? values.loadPlain(type, attributes.a(value), attributes.b(value))
      : values.load(type, attributes.a(value), attributes.b(value));
  }

  /** Whether a MIME type, its parameters aside, is text/plain in any case. */
  function isPlainText(at: number, length: number): boolean {
    let start = at;
    let end = at + length;
    const { u8 } = kernel;
    for (let i = start; i < end; i++) {
      if (u8[i] === 0x3b) {
        end = i;
        break;
      }
    }
    start = kernel.x.skipSpace(start, end);
    while (end > start && kernel.x.skipSpace(end - 1, end) === end) end--;
    if (end - start !== TEXT_PLAIN.length) return false;
    for (let i = 0; i < TEXT_PLAIN.length; i++) {
      const byte = u8[start + i] ?? 0;
      const lower = byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
      if (lower !== TEXT_PLAIN.charCodeAt(i)) return false;
    }
    return true;
  }

  const retrieverInputs: Source = (span, out) => {
    if (span.runType !== RunType.Retriever) return false;
    const loaded = loadValue(span, key.inputValue, key.inputMime);
    if (loaded === Loaded.Absent) return false;
    const node = loaded === Loaded.Document ? values.node : 0;
    // "" says nothing
    if (node !== 0 && docs.type(node) === Node.String && messages.nodes.filled(node) === 0) return false;
    if (node !== 0 && docs.type(node) === Node.Object) {
      const query =
        messages.nodes.filled(docs.member(node, l.query)) ||
        messages.nodes.filled(docs.member(node, l.question)) ||
        messages.nodes.filled(docs.member(node, l.input));
      if (query === 0) {
        docs.copy(node, out);
        return true;
      }
      out.literal(l.queryOpen);
      docs.copy(query, out);
    } else {
      out.literal(l.queryOpen);
      values.copy(loaded, out);
    }
    out.byte(CLOSE_OBJECT);
    return true;
  };

  return {
    templateInputs: (span, out) => {
      if (span.runType !== RunType.Prompt) return false;
      if (values.loadKey(span.attributes, key.variables) !== Loaded.Document) return false;
      if (docs.type(values.node) !== Node.Object) return false;
      docs.copy(values.node, out);
      return true;
    },
    messageInputs,
    messageOutputs,
    rerankerInputs,
    rerankerOutputs: documentOutputs(reranked),
    embeddingInputs,
    embeddingOutputs,
    retrieverInputs,
    retrieverOutputs: documentOutputs(retrieved),
    valueInputs: (span, out) =>
      wrapping.write(loadValue(span, key.inputValue, key.inputMime), 'input', span, out) ||
      wrapping.write(values.loadKey(span.attributes, key.callArguments), 'input', span, out),
    valueOutputs: (span, out) => wrapping.outputs(loadValue(span, key.outputValue, key.outputMime), span, out),
    tools,
    isCompletion: (span) => (span.families & (prompts | choices)) !== 0,
  };
}
