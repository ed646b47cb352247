/** The members of the run's own record: name, run type, status, project, tags, example. */
import type { Attributes } from './attributes.ts';
import { Node } from './document.ts';
import { ValueType, Word } from './kernel/kernel.ts';
import type { Literal } from './kernel/kernel.ts';
import type { Key } from './keys.ts';
import { Group, Mark } from './keys.ts';
import { RUN_TYPE_NAMES, RunType } from './span.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import { Loaded } from './value.ts';
import { Words } from './words.ts';
import type { Writer } from './writer.ts';

const CLOSE_ARRAY = 0x5d;
const QUOTE = 0x22;
const COMMA = 0x2c;
/** More tags than this are collected as strings. */
const MAX_PLAIN_TAGS = 32;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Where the AI SDK puts what its caller wants to be told; the first wins. */
export const VERCEL_METADATA_PREFIXES = [
  'ai.telemetry.metadata.',
  'ai.settings.context.',
  'ai.settings.runtimeContext.',
] as const;

/** The project of the request, as UTF-8 in the kernel's memory; length -1: none. */
export interface ProjectText {
  at: number;
  length: number;
}

export interface Head {
  write(span: Span, status: Literal, project: ProjectText, out: Writer): void;
}

export function head(box: Toolbox): Head {
  const { kernel, keys, docs, values, lit } = box;
  const vercel = (name: string): Key[] => VERCEL_METADATA_PREFIXES.map((prefix) => keys.key(prefix + name));
  const key = {
    traceName: keys.key('langsmith.trace.name'),
    runNames: [...vercel('ls_run_name'), keys.key('langsmith.metadata.ls_run_name')],
    entityName: keys.key('traceloop.entity.name'),
    openInferenceKind: keys.key('openinference.span.kind'),
    toolName: keys.key('tool.name'),
    operationId: keys.key('ai.operationId'),
    vercelTool: keys.key('ai.toolCall.name'),
    genAiTool: keys.key('gen_ai.tool.name'),
    operation: keys.key('gen_ai.operation.name'),
    agent: keys.key('gen_ai.agent.name'),
    workflow: keys.key('gen_ai.workflow.name'),
    sessionId: keys.key('langsmith.trace.session_id'),
    sessionName: keys.key('langsmith.trace.session_name'),
    projectIds: vercel('ls_project_id'),
    projectNames: vercel('ls_project_name'),
    tags: keys.key('langsmith.span.tags', Group.Tags),
    moreTags: keys.key('tag.tags', Group.Tags),
    example: keys.key('langsmith.reference_example_id', Group.Tags),
  };
  const kinds = new Words(box, { tool: 0 });
  const calls = new Words(box, { 'ai.toolCall': 0 });
  const operations = new Words(box, { invoke_agent: 0, invoke_workflow: 1 });
  const runTypes = RUN_TYPE_NAMES.map((name) => lit(`"run_type":"${name}",`));
  const l = {
    nameIs: lit('"name":'),
    unnamed: lit('"unnamed"'),
    statusIs: lit('"status":'),
    sessionNameIs: lit('"session_name":'),
    sessionIdIs: lit('"session_id":'),
    defaultProject: lit('"default"'),
    tagsIs: lit('"tags":['),
    exampleIs: lit('"reference_example_id":'),
  };
  const seen = new Set<string>();

  const copyText = (attributes: Attributes, name: Key, out: Writer): boolean => {
    if (!attributes.hasText(name)) return false;
    out.string(attributes.a(name), attributes.b(name));
    return true;
  };

  function writeName(span: Span, out: Writer): void {
    const { attributes, marks, runType } = span;
    if ((marks & (Mark.Langsmith | Mark.Ai)) !== 0) {
      if (copyText(attributes, key.traceName, out)) return;
      for (const name of key.runNames) if (copyText(attributes, name, out)) return;
    }
    if ((marks & Mark.Traceloop) !== 0 && copyText(attributes, key.entityName, out)) return;
    if ((marks & Mark.OpenInference) !== 0 && attributes.hasText(key.toolName)) {
      const kind = key.openInferenceKind;
      if (attributes.hasText(kind) && kinds.findAnyCase(attributes.a(kind), attributes.b(kind)) === 0) {
        copyText(attributes, key.toolName, out);
        return;
      }
    }
    if ((marks & Mark.Ai) !== 0 && attributes.hasText(key.vercelTool) && attributes.hasText(key.operationId)) {
      if (calls.find(attributes.a(key.operationId), attributes.b(key.operationId)) === 0) {
        copyText(attributes, key.vercelTool, out);
        return;
      }
    }
    if ((marks & Mark.GenAiKey) !== 0) {
      if (runType === RunType.Tool && copyText(attributes, key.genAiTool, out)) return;
      if (attributes.hasText(key.operation)) {
        const operation = operations.find(attributes.a(key.operation), attributes.b(key.operation));
        if (operation === 0 && copyText(attributes, key.agent, out)) return;
        if (operation === 1 && copyText(attributes, key.workflow, out)) return;
      }
    }
    const { i32 } = kernel;
    const length = i32[Word.NameLen] ?? 0;
    if (length > 0) out.string(i32[Word.NameOff] ?? 0, length);
    else if (!copyText(attributes, key.operation, out)) out.literal(l.unnamed);
  }

  const textOf = (attributes: Attributes, name: Key): string =>
    Buffer.from(kernel.u8.subarray(attributes.a(name), attributes.a(name) + attributes.b(name))).toString('utf8');

  /** Writes a UUID attribute in lower case, quoted; false when it is none. */
  function writeUuid(attributes: Attributes, name: Key, out: Writer): boolean {
    if (attributes.type(name) !== ValueType.String || attributes.b(name) !== 36) return false;
    const text = textOf(attributes, name);
    if (!UUID.test(text)) return false;
    out.text(`"${text.toLowerCase()}"`);
    return true;
  }

  function writeProject(span: Span, project: ProjectText, out: Writer): void {
    if (project.length >= 0) {
      out.literal(l.sessionNameIs);
      out.string(project.at, project.length);
      return;
    }
    const { attributes } = span;
    const start = out.pos;
    const tryId = (name: Key): boolean => {
      out.literal(l.sessionIdIs);
      if (writeUuid(attributes, name, out)) return true;
      out.pos = start;
      return false;
    };
    if (tryId(key.sessionId)) return;
    out.literal(l.sessionNameIs);
    if (copyText(attributes, key.sessionName, out)) return;
    out.pos = start;
    for (const name of key.projectIds) if (attributes.has(name) && tryId(name)) return;
    out.literal(l.sessionNameIs);
    for (const name of key.projectNames) if (copyText(attributes, name, out)) return;
    out.literal(l.defaultProject);
  }

  /** Tags are few and wanted without repetition: strings are made here. */
  function collectTags(attributes: Attributes, name: Key): void {
    const loaded = values.loadKey(attributes, name);
    if (loaded === Loaded.Document && docs.type(values.node) === Node.Array) {
      const stop = docs.next(values.node);
      for (let item = docs.first(values.node); item < stop; item = docs.next(item)) {
        if (docs.type(item) === Node.String) addTag(JSON.parse(docs.text(item)) as string);
      }
      return;
    }
    if (attributes.type(name) !== ValueType.String) return;
    for (const tag of textOf(attributes, name).split(',')) addTag(tag);
  }

  function addTag(tag: string): void {
    const trimmed = tag.replace(/^[ \t\n\r]+|[ \t\n\r]+$/g, '');
    if (trimmed !== '') seen.add(trimmed.toWellFormed());
  }

  /** Tags as one string without JSON, quickly: no strings are made. False: it is anything else. */
  function writePlainTags(attributes: Attributes, out: Writer): boolean {
    if (attributes.has(key.moreTags) || attributes.type(key.tags) !== ValueType.String) return false;
    const at = attributes.a(key.tags);
    const end = at + attributes.b(key.tags);
    const { u8, x } = kernel;
    const first = x.skipSpace(at, end);
    if (first === end || u8[first] === 0x5b || u8[first] === QUOTE || x.wellFormed(at, end - at) === 0) return false;
    out.literal(l.tagsIs);
    let count = 0;
    for (let from = at; from <= end;) {
      let to = from;
      while (to < end && u8[to] !== COMMA) to++;
      const start = x.skipSpace(from, to);
      let stop = to;
      while (stop > start && x.skipSpace(stop - 1, stop) === stop) stop--;
      if (stop > start && !isEarlier(start, stop - start, count)) {
        if (count === MAX_PLAIN_TAGS) return false;
        tagAt[count] = start;
        tagLength[count] = stop - start;
        count++;
        out.string(start, stop - start);
        out.comma();
      }
      from = to + 1;
    }
    if (count === 0) return false;
    out.close(CLOSE_ARRAY);
    out.comma();
    return true;
  }

  function isEarlier(at: number, length: number, count: number): boolean {
    for (let i = 0; i < count; i++) {
      if (tagLength[i] === length && kernel.x.equals(tagAt[i] ?? 0, at, length) !== 0) return true;
    }
    return false;
  }
  const tagAt = new Int32Array(MAX_PLAIN_TAGS);
  const tagLength = new Int32Array(MAX_PLAIN_TAGS);

  function writeTags(attributes: Attributes, out: Writer): void {
    const start = out.pos;
    if (writePlainTags(attributes, out)) return;
    out.pos = start;
    seen.clear();
    collectTags(attributes, key.tags);
    collectTags(attributes, key.moreTags);
    if (seen.size === 0) return;
    out.literal(l.tagsIs);
    for (const tag of seen) {
      out.text(JSON.stringify(tag));
      out.comma();
    }
    out.close(CLOSE_ARRAY);
    out.comma();
    seen.clear();
  }

  return {
    write: (span, status, project, out) => {
      const { attributes } = span;
      out.literal(l.nameIs);
      writeName(span, out);
      out.comma();
      const runType = runTypes[span.runType];
      if (runType !== undefined) out.literal(runType);
      out.literal(l.statusIs);
      out.byte(QUOTE);
      out.literal(status);
      out.byte(QUOTE);
      out.comma();
      writeProject(span, project, out);
      if ((span.groups & Group.Tags) === 0) return;
      if (attributes.has(key.tags) || attributes.has(key.moreTags)) {
        out.comma();
        writeTags(attributes, out);
        out.dropComma();
      }
      if (attributes.has(key.example)) {
        const start = out.pos;
        out.comma();
        out.literal(l.exampleIs);
        if (!writeUuid(attributes, key.example, out)) out.pos = start;
      }
    },
  };
}
