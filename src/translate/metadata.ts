/**
 * `extra.metadata`. A key is written once, so the layers go from the highest priority to the lowest:
 *
 * `OTEL_TRACE_ID`, `OTEL_SPAN_ID`; usage; `langsmith.metadata.<key>`; the AI SDK's `<key>` prefixes;
 * `traceloop.association.properties.<key>`; the JSON object `metadata`; derived keys (the tables below); `otel_scope`,
 * `otel_span_kind`, `otel_links`; generic attributes (GENERIC_OTEL_ENABLED); resource attributes.
 */
import type { Attributes } from './attributes.ts';
import { Node } from './document.ts';
import { ValueType, Word } from './kernel/kernel.ts';
import type { Literal } from './kernel/kernel.ts';
import type { Key } from './keys.ts';
import { Group, Mark } from './keys.ts';
import { VERCEL_METADATA_PREFIXES } from './head.ts';
import { ClaimedKeys, Members } from './members.ts';
import type { SharedMembers } from './members.ts';
import { RunType } from './span.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import type { Usage } from './usage.ts';
import { Loaded } from './value.ts';
import { Words } from './words.ts';
import type { Writer } from './writer.ts';

const CLOSE_ARRAY = 0x5d;
const CLOSE_OBJECT = 0x7d;
const QUOTE = 0x22;
const COLON = 0x3a;
const DOT = 0x2e;
const LINK_TAG = (13 << 3) | 2;
const LINK_ATTRIBUTES = 4;
const ATTRIBUTES = 9;

/** Key → attributes, the first that is set and not empty. */
const DERIVED: Readonly<Record<string, readonly string[]>> = {
  session_id: ['session.id', 'mcp.session.id'],
  conversation_id: ['gen_ai.conversation.id'],
  user_id: ['user.id', 'enduser.id', 'gen_ai.user', 'llm.user'],
  agent_name: ['gen_ai.agent.name', 'agent.name', 'agent_name'],
  agent_id: ['gen_ai.agent.id'],
  workflow_name: ['gen_ai.workflow.name', 'traceloop.workflow.name'],
  tool_call_id: ['gen_ai.tool.call.id', 'ai.toolCall.id', 'tool_call.id'],
  tool_description: ['gen_ai.tool.description', 'tool.description'],
  response_id: ['gen_ai.response.id', 'ai.response.id'],
  data_source_id: ['gen_ai.data_source.id'],
  graph_node_id: ['graph.node.id'],
  graph_node_name: ['graph.node.name'],
  graph_node_parent_id: ['graph.node.parent_id'],
  tool_parameters: ['tool.parameters'],
  tool_json_schema: ['tool.json_schema'],
  prompt_template: ['llm.prompt_template.template'],
  prompt_template_version: ['llm.prompt_template.version'],
};

const PROVIDERS = ['gen_ai.provider.name', 'gen_ai.system', 'llm.system', 'llm.provider'];

const MODEL_NAMES = [
  'gen_ai.request.model',
  'gen_ai.response.model',
  'model',
  'llm.model_name',
  'embedding.model_name',
  'reranker.model_name',
  'llm.response.model_name',
  'ai.model.id',
  'model_name',
];

const SPAN_KINDS = [null, null, 'server', 'client', 'producer', 'consumer'];

/** What the run's error is derived from; see verdict.ts. */
export interface ErrorType {
  hasErrorType(span: Span): boolean;
  /** Writes the value of `error_type`. */
  writeErrorType(span: Span, out: Writer): void;
}

/** Members of the resource that the spans at hand share, and their scope's name. */
export interface Shared {
  /** The Resource message. */
  resourceAt: number;
  resourceEnd: number;
  scopeAt: number;
  scopeLength: number;
}

/** Writes further members, keys claimed, at the place of the generic attributes. */
export type GenericMembers = (at: number, end: number, claimed: ClaimedKeys, out: Writer) => void;

export interface Metadata {
  /** Writes the object. `at` and `end` are the Span message. */
  write(span: Span, shared: Shared, at: number, end: number, error: ErrorType, out: Writer): void;
}

export function metadata(
  box: Toolbox,
  usage: Usage,
  resource: SharedMembers,
  isCompletion: (span: Span) => boolean,
  generic: GenericMembers | null,
): Metadata {
  const { kernel, keys, docs, values, lit } = box;
  const claimed = new ClaimedKeys(box);
  const linkKeys = new ClaimedKeys(box);
  const members = new Members(box);

  interface Named {
    readonly key: Literal;
    readonly is: Literal;
  }
  const named = (name: string): Named => ({ key: lit(name), is: lit(`"${name}":`) });
  const derived = Object.entries(DERIVED).map(([name, names]) => ({
    ...named(name),
    candidates: names.map((key) => keys.key(key, Group.Derived)),
  }));
  const providers = PROVIDERS.map((name) => keys.key(name));
  const models = MODEL_NAMES.map((name) => keys.key(name));
  const key = {
    vercelProvider: keys.key('ai.model.provider'),
    variables: keys.key('llm.prompt_template.variables', Group.Derived),
    metadata: keys.key('metadata'),
    params: keys.key('langsmith.metadata.invocation_params'),
    lsParams: keys.key('langsmith.metadata.ls_invocation_params'),
    operation: keys.key('gen_ai.operation.name'),
    requestType: keys.key('llm.request.type'),
    otherRequestType: keys.key('traceloop.llm.request.type'),
  };
  const association = keys.prefix('traceloop.association.properties.');
  const vercelPrefixes = VERCEL_METADATA_PREFIXES.map((prefix) => keys.prefix(prefix));
  const langsmith = keys.prefix('langsmith.metadata.');
  const completions = new Words(box, { completion: 0, text_completion: 1 });
  const n = {
    traceId: named('OTEL_TRACE_ID'),
    spanId: named('OTEL_SPAN_ID'),
    usage: named('usage_metadata'),
    aggregated: named('aggregated_usage'),
    params: named('invocation_params'),
    lsParams: named('ls_invocation_params'),
    provider: named('ls_provider'),
    model: named('ls_model_name'),
    modelType: named('ls_model_type'),
    variables: named('prompt_template_variables'),
    errorType: named('error_type'),
    scope: named('otel_scope'),
    kind: named('otel_span_kind'),
    links: named('otel_links'),
  };
  const spanKinds = SPAN_KINDS.map((name) => (name === null ? null : lit(`"${name}"`)));
  const l = {
    open: lit('{'),
    chat: lit('"chat"'),
    llm: lit('"llm"'),
    traceIdIs: lit('{"trace_id":"'),
    spanIdIs: lit('","span_id":"'),
    attributesIs: lit('","attributes":{'),
    openArray: lit('['),
  };

  const isSet = (attributes: Attributes, name: Key): boolean => {
    const type = attributes.type(name);
    if (type === ValueType.Absent) return false;
    return !(type === ValueType.String && attributes.b(name) === 0);
  };

  /** Claims a fixed key and writes it with its colon. */
  const open = (name: Named, out: Writer): boolean => {
    if (!claimed.claim(name.key.at, name.key.length)) return false;
    out.literal(name.is);
    return true;
  };

  function writeValue(attributes: Attributes, name: Key, out: Writer): void {
    values.write(attributes.type(name), attributes.a(name), attributes.b(name), out);
    out.comma();
  }

  function writeIds(out: Writer): void {
    const { i32, x } = kernel;
    open(n.traceId, out);
    out.room(80);
    out.byte(QUOTE);
    out.pos = x.hexText(i32[Word.TraceOff] ?? 0, 16, out.pos);
    out.byte(QUOTE);
    out.comma();
    open(n.spanId, out);
    out.byte(QUOTE);
    out.pos = x.hexText(i32[Word.SpanOff] ?? 0, 8, out.pos);
    out.byte(QUOTE);
    out.comma();
  }

  function writeUsage(span: Span, out: Writer): void {
    if (span.usageLength > 0) {
      open(n.usage, out);
      out.raw(span.usageAt, span.usageLength);
      out.comma();
    }
    const next = out.pos;
    out.literal(n.aggregated.is);
    if (usage.aggregated(span, out)) {
      claimed.claim(n.aggregated.key.at, n.aggregated.key.length);
      out.comma();
    } else out.pos = next;
  }

  /** Attributes whose documents are parsed although they are metadata. */
  function writeParsed(span: Span, name: Named, source: Key, out: Writer): void {
    const { attributes } = span;
    if (!attributes.has(source)) return;
    const loaded = values.loadKey(attributes, source);
    if (loaded === Loaded.Absent || !open(name, out)) return;
    values.copy(loaded, out);
    out.comma();
  }

  /** Writes the attributes of one prefix, the last of equal keys. */
  function writePrefixed(attributes: Attributes, prefix: number, out: Writer): void {
    for (let i = attributes.prefixedCount - 1; i >= 0; i--) {
      const word = attributes.prefixedWord(i);
      const { i32 } = kernel;
      if (i32[word] !== prefix) continue;
      if (!claimed.claim(i32[word + 1] ?? 0, i32[word + 2] ?? 0)) continue;
      out.string(claimed.at, claimed.length);
      out.byte(COLON);
      values.write(i32[word + 3] ?? 0, i32[word + 4] ?? 0, i32[word + 5] ?? 0, out);
      out.comma();
    }
  }

  function writeDocument(attributes: Attributes, out: Writer): void {
    if (!attributes.has(key.metadata)) return;
    if (values.loadKey(attributes, key.metadata) !== Loaded.Document) return;
    const node = values.node;
    if (docs.type(node) !== Node.Object) return;
    const stop = docs.next(node);
    for (let name = docs.first(node); name < stop; name = docs.next(docs.value(name))) {
      if (!docs.counts(node, name)) continue;
      const start = docs.start(name);
      if (!claimed.claimQuoted(start, docs.end(name) - start)) continue;
      docs.copy(name, out);
      out.byte(COLON);
      docs.copy(docs.value(name), out);
      out.comma();
    }
  }

  const sameText = (attributes: Attributes, one: Key, other: Key): boolean =>
    attributes.hasText(other) &&
    attributes.b(one) === attributes.b(other) &&
    kernel.x.equals(attributes.a(one), attributes.a(other), attributes.b(one)) !== 0;

  function writeProvider(span: Span, out: Writer): void {
    const { attributes, marks } = span;
    for (const name of providers) {
      if (!attributes.hasText(name)) continue;
      // the AI SDK repeats its own spelling under the conventions' key
      if ((marks & Mark.Ai) !== 0 && sameText(attributes, name, key.vercelProvider)) break;
      if (open(n.provider, out)) writeValue(attributes, name, out);
      return;
    }
    if ((marks & Mark.Ai) === 0 || !attributes.hasText(key.vercelProvider)) return;
    // `openai.chat` is the provider openai
    const at = attributes.a(key.vercelProvider);
    const end = at + attributes.b(key.vercelProvider);
    let stop = at;
    while (stop < end && kernel.u8[stop] !== DOT) stop++;
    if (stop === at || !open(n.provider, out)) return;
    out.string(at, stop - at);
    out.comma();
  }

  function writeModel(attributes: Attributes, out: Writer): void {
    for (const name of models) {
      if (!attributes.hasText(name)) continue;
      if (open(n.model, out)) writeValue(attributes, name, out);
      return;
    }
  }

  function modelType(span: Span): Literal {
    const { attributes } = span;
    if (attributes.hasText(key.operation)) {
      return completions.find(attributes.a(key.operation), attributes.b(key.operation)) >= 0 ? l.llm : l.chat;
    }
    const requestType = attributes.hasText(key.requestType) ? key.requestType : key.otherRequestType;
    if (attributes.hasText(requestType)) {
      return completions.find(attributes.a(requestType), attributes.b(requestType)) === 0 ? l.llm : l.chat;
    }
    return isCompletion(span) ? l.llm : l.chat;
  }

  function writeDerived(span: Span, error: ErrorType, out: Writer): void {
    const { attributes, runType } = span;
    writeProvider(span, out);
    writeModel(attributes, out);
    if (runType === RunType.Llm && open(n.modelType, out)) {
      out.literal(modelType(span));
      out.comma();
    }
    if ((span.groups & Group.Derived) !== 0) writeTable(span, out);
    if (error.hasErrorType(span) && open(n.errorType, out)) {
      error.writeErrorType(span, out);
      out.comma();
    }
  }

  function writeTable(span: Span, out: Writer): void {
    const { attributes, runType } = span;
    for (const name of derived) {
      for (const candidate of name.candidates) {
        if (!isSet(attributes, candidate)) continue;
        if (open(name, out)) writeValue(attributes, candidate, out);
        break;
      }
    }
    if (runType !== RunType.Prompt && isSet(attributes, key.variables) && open(n.variables, out)) {
      writeValue(attributes, key.variables, out);
    }
  }

  function writeLinks(at: number, end: number, out: Writer): void {
    const start = out.pos;
    out.literal(n.links.is);
    out.literal(l.openArray);
    const first = out.pos;
    let pos = at;
    while (pos !== 0 && pos < end) {
      pos = kernel.x.readField(pos, end);
      const { i32 } = kernel;
      if (i32[Word.ValueType] === LINK_TAG) writeLink(i32[Word.ValueA] ?? 0, i32[Word.ValueB] ?? 0, out);
    }
    if (out.pos === first || !claimed.claim(n.links.key.at, n.links.key.length)) {
      out.pos = start;
      return;
    }
    out.close(CLOSE_ARRAY);
    out.comma();
  }

  function isId(at: number, length: number, size: number): boolean {
    if (length !== size) return false;
    for (let i = at; i < at + size; i++) if (kernel.u8[i] !== 0) return true;
    return false;
  }

  function writeLink(at: number, end: number, out: Writer): void {
    const { x, i32 } = kernel;
    x.scanLink(at, end);
    const trace = i32[Word.LinkTraceOff] ?? 0;
    const span = i32[Word.LinkSpanOff] ?? 0;
    if (!isId(trace, i32[Word.LinkTraceLen] ?? 0, 16) || !isId(span, i32[Word.LinkSpanLen] ?? 0, 8)) return;
    out.literal(l.traceIdIs);
    out.room(80);
    out.pos = x.hexText(trace, 16, out.pos);
    out.literal(l.spanIdIs);
    out.room(80);
    out.pos = x.hexText(span, 8, out.pos);
    const attributes = out.pos;
    out.literal(l.attributesIs);
    linkKeys.begin();
    if (members.write(at, end, LINK_ATTRIBUTES, linkKeys, out) > 0) out.close(CLOSE_OBJECT);
    else {
      out.pos = attributes;
      out.byte(QUOTE);
    }
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  return {
    write: (span, shared, at, end, error, out) => {
      const { attributes, marks } = span;
      claimed.begin();
      out.literal(l.open);
      writeIds(out);
      writeUsage(span, out);
      if ((marks & Mark.Langsmith) !== 0) {
        writeParsed(span, n.params, key.params, out);
        writeParsed(span, n.lsParams, key.lsParams, out);
      }
      if (attributes.prefixedCount > 0) {
        writePrefixed(attributes, langsmith, out);
        if ((marks & Mark.Ai) !== 0) for (const prefix of vercelPrefixes) writePrefixed(attributes, prefix, out);
        if ((marks & Mark.Traceloop) !== 0) writePrefixed(attributes, association, out);
      }
      writeDocument(attributes, out);
      writeDerived(span, error, out);
      if (shared.scopeLength > 0 && open(n.scope, out)) {
        out.string(shared.scopeAt, shared.scopeLength);
        out.comma();
      }
      const kind = spanKinds[kernel.i32[Word.Kind] ?? 0];
      if (kind !== null && kind !== undefined && open(n.kind, out)) {
        out.literal(kind);
        out.comma();
      }
      if ((kernel.i32[Word.Links] ?? 0) > 0) writeLinks(at, end, out);
      if (generic !== null) generic(at, end, claimed, out);
      resource.copy(claimed, out);
      out.close(CLOSE_OBJECT);
    },
  };
}

/** Field number of a span's attributes, for `GenericMembers`. */
export const SPAN_ATTRIBUTES = ATTRIBUTES;
