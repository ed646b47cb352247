/**
 * Conversations told as a run of message events: span events (GenAI before v1.37, Semantic Kernel, Strands), or Logfire's
 * list of them in the attribute `events`. Events before the answer are history, so all of them are inputs; choices are
 * the outputs; without a choice a trailing assistant message is the answer.
 */
import type { Attributes } from '../attributes.ts';
import { Node } from '../document.ts';
import type { NodeWord } from '../document.ts';
import { Draft } from '../draft.ts';
import type { EventReader } from '../events.ts';
import { ValueType } from '../kernel/kernel.ts';
import { Group } from '../keys.ts';
import type { Literal } from '../kernel/kernel.ts';
import { IN_EVENT } from '../messages/kinds.ts';
import type { Messages } from '../messages/messages.ts';
import { EventKind, FIRST_MESSAGE_KIND } from '../span.ts';
import type { Source, Span } from '../span.ts';
import type { Toolbox } from '../toolbox.ts';
import { Loaded } from '../value.ts';
import type { Wrapping } from '../wrap.ts';
import type { Writer } from '../writer.ts';

const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const CallField = { Id: 1, Type: 2, Name: 3, Arguments: 4, FunctionName: 5, FunctionArguments: 6 } as const;

const TURN_KINDS =
  (1 << EventKind.Choice) |
  (1 << EventKind.SystemMessage) |
  (1 << EventKind.UserMessage) |
  (1 << EventKind.AssistantMessage) |
  (1 << EventKind.ToolMessage) |
  (1 << EventKind.DeveloperMessage);

export interface Conversation {
  readonly eventInputs: Source;
  readonly eventOutputs: Source;
  readonly loggedInputs: Source;
  readonly loggedOutputs: Source;
  /**
   * Writes all turns of a list of logged events as messages, choices included; false when it is none. For conversations
   * that are split afterwards.
   */
  flatten(list: NodeWord, out: Writer): boolean;
}

export function conversation(box: Toolbox, messages: Messages, wrapping: Wrapping, events: EventReader): Conversation {
  const { keys, docs, values, view, families, lit } = box;
  const draft = new Draft(box);
  const key = {
    prompt: keys.key('gen_ai.prompt'),
    completion: keys.key('gen_ai.completion'),
    whole: keys.eventKey('gen_ai.event.content'),
    content: keys.eventKey('content'),
    role: keys.eventKey('role'),
    name: keys.eventKey('name'),
    id: keys.eventKey('id'),
    toolCalls: keys.eventKey('tool_calls'),
    index: keys.eventKey('index'),
    finishReason: keys.eventKey('finish_reason'),
    message: keys.eventKey('message'),
    messageContent: keys.eventKey('message.content'),
    messageRole: keys.eventKey('message.role'),
    events: keys.key('events', Group.Conversation),
  };
  const callFamily = families.declare([
    ['tool_calls.#.id', CallField.Id],
    ['tool_calls.#.type', CallField.Type],
    ['tool_calls.#.name', CallField.Name],
    ['tool_calls.#.arguments', CallField.Arguments],
    ['tool_calls.#.function.name', CallField.FunctionName],
    ['tool_calls.#.function.arguments', CallField.FunctionArguments],
  ]);
  const l = {
    eventName: lit('event.name'),
    roleIs: lit('"role":'),
    contentIs: lit('"content":'),
    nameIs: lit('"name":'),
    toolCallIdIs: lit('"tool_call_id":'),
    callsIs: lit('"tool_calls":['),
    idIs: lit('"id":'),
    typeIs: lit('"type":'),
    functionIs: lit('"function":{'),
    argumentsIs: lit('"arguments":'),
    indexIs: lit('"index":'),
    finishIs: lit('"finish_reason":'),
    messageIs: lit('"message":'),
    messages: lit('{"messages":['),
    choices: lit('{"choices":['),
    message: lit('message'),
    content: lit('content'),
    finishReason: lit('finish_reason'),
    contentNull: lit(',"content":null'),
    finishMore: lit(',"finish_reason":'),
    toolCalls: lit('tool_calls'),
    tool: lit('tool'),
  };
  const assistant = lit('"assistant"');
  const roles: Literal[] = [];
  roles[EventKind.SystemMessage] = lit('"system"');
  roles[EventKind.UserMessage] = lit('"user"');
  roles[EventKind.AssistantMessage] = assistant;
  roles[EventKind.ToolMessage] = lit('"tool"');
  roles[EventKind.DeveloperMessage] = lit('"developer"');
  const roleOf = (kind: number): Literal => roles[kind] ?? assistant;

  // The turns of the conversation at hand: kind of event, and its message or choice as a document.
  const kinds: number[] = [];
  const nodes: NodeWord[] = [];

  // ---- from span events -----------------------------------------------------------------------------------------

  function draftCall(from: number, to: number): void {
    const plain = (name: Literal, position: number): void => {
      if (position >= 0) draft.text(name, view.type(position), view.a(position), view.b(position));
    };
    const either = (one: number, other: number): number => {
      const found = view.find(from, to, one);
      return found >= 0 ? found : view.find(from, to, other);
    };
    draft.out.byte(OPEN_OBJECT);
    plain(l.idIs, view.find(from, to, CallField.Id));
    plain(l.typeIs, view.find(from, to, CallField.Type));
    draft.out.literal(l.functionIs);
    plain(l.nameIs, either(CallField.Name, CallField.FunctionName));
    const args = either(CallField.Arguments, CallField.FunctionArguments);
    if (args >= 0) draft.callArguments(l.argumentsIs, view.type(args), view.a(args), view.b(args));
    draft.out.close(CLOSE_OBJECT);
    draft.out.byte(CLOSE_OBJECT);
    draft.out.comma();
  }

  /** Drafts `"tool_calls":[…],` from an event's attributes. */
  function draftCalls(event: Attributes): void {
    const loaded = values.loadKey(event, key.toolCalls);
    const indexed = event.indexedCount > 0 && (view.present(event) & callFamily) !== 0;
    if (loaded !== Loaded.Document && !indexed) return;
    const at = draft.out.pos;
    draft.out.literal(l.callsIs);
    const first = draft.out.pos;
    if (loaded === Loaded.Document) messages.calls.list(values.node, draft.out);
    if (indexed) {
      view.select(event, callFamily);
      for (let from = 0; from < view.count;) {
        const to = view.groupEnd(from);
        draftCall(from, to);
        from = to;
      }
    }
    if (draft.out.pos === first) {
      draft.out.pos = at;
      return;
    }
    draft.out.close(CLOSE_ARRAY);
    draft.out.comma();
  }

  const draftText = (name: Literal, event: Attributes, ...candidates: number[]): boolean => {
    for (const candidate of candidates) {
      if (event.hasText(candidate)) return draft.member(name, ValueType.String, event.a(candidate), event.b(candidate));
    }
    return false;
  };

  const draftContent = (event: Attributes, ...candidates: number[]): void => {
    for (const candidate of candidates) {
      const type = event.type(candidate);
      if (type === ValueType.Absent) continue;
      draft.content(l.contentIs, type, event.a(candidate), event.b(candidate));
      return;
    }
  };

  /** Whether the event's attribute `role`, else its kind, says `tool`. */
  const isTool = (event: Attributes, kind: number): boolean => {
    if (!event.hasText(key.role)) return kind === EventKind.ToolMessage;
    const length = event.b(key.role);
    return length === l.tool.length && box.kernel.x.equals(event.a(key.role), l.tool.at, length) !== 0;
  };

  /** The event's message or choice as a document. */
  function draftEvent(event: Attributes, kind: number): NodeWord {
    const isChoice = kind === EventKind.Choice;
    const type = event.type(key.whole);
    const whole = type === ValueType.Absent ? Loaded.Absent : values.load(type, event.a(key.whole), event.b(key.whole));
    if (whole === Loaded.Document && docs.type(values.node) === Node.Object) return values.node;
    const start = draft.out.pos;
    draft.out.byte(OPEN_OBJECT);
    if (isChoice) {
      draftPlain(l.indexIs, event, key.index);
      draftText(l.finishIs, event, key.finishReason);
      if (whole !== Loaded.Absent) {
        draft.out.literal(l.messageIs);
        draftWhole(event, whole);
      } else if (values.loadKey(event, key.message) !== Loaded.Absent) {
        draft.document(l.messageIs, event.type(key.message), event.a(key.message), event.b(key.message));
      } else {
        draft.out.literal(l.messageIs);
        draft.out.byte(OPEN_OBJECT);
        draftText(l.roleIs, event, key.messageRole, key.role);
        draftContent(event, key.messageContent, key.content);
        draft.out.close(CLOSE_OBJECT);
        draft.out.comma();
      }
    } else {
      draftText(l.roleIs, event, key.role);
      if (whole === Loaded.Absent) draftContent(event, key.content);
      else {
        draft.out.literal(l.contentIs);
        draftWhole(event, whole);
      }
      draftText(l.nameIs, event, key.name);
      if (isTool(event, kind)) draftText(l.toolCallIdIs, event, key.id);
    }
    draftCalls(event);
    draft.out.close(CLOSE_OBJECT);
    return draft.close(start);
  }

  function draftPlain(name: Literal, event: Attributes, candidate: number): void {
    const type = event.type(candidate);
    if (type !== ValueType.Absent) draft.member(name, type, event.a(candidate), event.b(candidate));
  }

  /** `gen_ai.event.content` that is no object: its parts, else its text. */
  function draftWhole(event: Attributes, whole: number): void {
    if (whole === Loaded.Document && messages.nodes.everyObject(values.node)) docs.copySource(values.node, draft.out);
    else {
      const type = event.type(key.whole);
      if (type === ValueType.String) draft.out.string(event.a(key.whole), event.b(key.whole));
      else values.copyAsString(whole, draft.out);
    }
    draft.out.comma();
  }

  function loadEvents(span: Span): boolean {
    if ((span.eventKinds & TURN_KINDS) === 0) return false;
    kinds.length = 0;
    nodes.length = 0;
    for (let i = 0; i < span.eventCount; i++) {
      const kind = events.kind(i);
      if (kind !== EventKind.Choice && kind < FIRST_MESSAGE_KIND) continue;
      const node = draftEvent(events.scan(i), kind);
      if (node === 0) continue;
      kinds.push(kind);
      nodes.push(node);
    }
    return kinds.length > 0;
  }

  // ---- from a list in an attribute ------------------------------------------------------------------------------

  /** The kind of event that a string node names. */
  function kindOf(name: NodeWord): number {
    const start = docs.start(name) + 1;
    const length = docs.end(name) - 1 - start;
    if (!docs.hasEscape(start, length)) return events.kindOf(start, length);
    const at = box.scratch.pos;
    box.scratch.text(JSON.parse(docs.text(name)) as string);
    const end = box.scratch.pos;
    box.scratch.align();
    return events.kindOf(at, end - at);
  }

  /** Reads a list of objects with `event.name`. False when there is none such. */
  function loadList(list: NodeWord): boolean {
    kinds.length = 0;
    nodes.length = 0;
    if (docs.type(list) !== Node.Array) return false;
    let named = false;
    const stop = docs.next(list);
    for (let item = docs.first(list); item < stop; item = docs.next(item)) {
      const name = messages.nodes.string(docs.member(item, l.eventName));
      if (name === 0) continue;
      named = true;
      const kind = kindOf(name);
      if (kind !== EventKind.Choice && kind < FIRST_MESSAGE_KIND) continue;
      kinds.push(kind);
      nodes.push(item);
    }
    return named;
  }

  function loadAttribute(span: Span): boolean {
    const { attributes } = span;
    if (!attributes.has(key.events)) return false;
    return values.loadKey(attributes, key.events) === Loaded.Document && loadList(values.node);
  }

  // ---- either way -----------------------------------------------------------------------------------------------

  /** Position of the trailing assistant message that is the answer, or -1. */
  function answer(): number {
    const last = kinds.length - 1;
    if (last < 0 || kinds.includes(EventKind.Choice)) return -1;
    const node = nodes[last] ?? 0;
    if (!messages.hasRole(node, roleOf(kinds[last] ?? 0), assistant)) return -1;
    const start = draft.out.pos;
    const only = messages.responses(node, draft.out);
    const answered = draft.out.pos > start;
    draft.out.pos = start;
    // responses stand behind the calls that they answer: then the assistant has not the last word
    return only || (answered && messages.hasCalls(node)) ? -1 : last;
  }

  function writeInputs(out: Writer): boolean {
    const trailing = answer();
    const start = out.pos;
    out.literal(l.messages);
    const first = out.pos;
    for (let i = 0; i < kinds.length; i++) {
      const kind = kinds[i] ?? 0;
      const node = nodes[i] ?? 0;
      if (kind === EventKind.Choice) continue;
      if (i === trailing) messages.responses(node, out);
      else messages.message(node, roleOf(kind), out, IN_EVENT, 0);
    }
    if (out.pos === first) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  }

  function writeOutputs(out: Writer): boolean {
    const choices: [index: number, node: NodeWord][] = [];
    for (let i = 0; i < kinds.length; i++) {
      if (kinds[i] !== EventKind.Choice) continue;
      const node = nodes[i] ?? 0;
      const index = messages.choices.index(node);
      choices.push([index < 0 ? choices.length : index, node]);
    }
    if (choices.length > 0) {
      choices.sort(([a], [b]) => a - b);
      out.literal(l.choices);
      for (const [, node] of choices) messages.choices.choice(node, out);
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    }
    const trailing = answer();
    if (trailing < 0) return false;
    out.literal(l.messages);
    messages.carrier(nodes[trailing] ?? 0, roleOf(kinds[trailing] ?? 0), out, IN_EVENT, 0);
    out.close(CLOSE_ARRAY);
    out.byte(CLOSE_OBJECT);
    return true;
  }

  /** The last event of a kind that has a value under the key. */
  function contentEvent(span: Span, kind: number, name: number, side: 'input' | 'output', out: Writer): boolean {
    if ((span.eventKinds & (1 << kind)) === 0) return false;
    for (let i = span.eventCount - 1; i >= 0; i--) {
      if (events.kind(i) !== kind) continue;
      if (wrapping.write(values.loadKey(events.scan(i), name), side, span, out)) return true;
    }
    return false;
  }

  /** Writes the message of a choice as one of a list: content there, its finish reason with it. */
  function flattenChoice(node: NodeWord, out: Writer): void {
    const start = out.pos;
    messages.choices.message(docs.present(node, l.message), docs.present(node, l.toolCalls), out);
    const message = docs.parse(start, out.pos - start);
    out.pos--; // the closing brace
    if (docs.member(message, l.content) === 0) out.literal(l.contentNull);
    const finish = messages.nodes.filled(docs.member(node, l.finishReason));
    if (finish !== 0 && messages.nodes.filled(docs.member(message, l.finishReason)) === 0) {
      out.literal(l.finishMore);
      docs.copy(finish, out);
    }
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  return {
    eventInputs: (span, out) =>
      contentEvent(span, EventKind.ContentPrompt, key.prompt, 'input', out) || (loadEvents(span) && writeInputs(out)),
    eventOutputs: (span, out) =>
      contentEvent(span, EventKind.ContentCompletion, key.completion, 'output', out) ||
      (loadEvents(span) && writeOutputs(out)),
    loggedInputs: (span, out) => loadAttribute(span) && writeInputs(out),
    loggedOutputs: (span, out) => loadAttribute(span) && writeOutputs(out),
    flatten: (list, out) => {
      if (!loadList(list)) return false;
      for (let i = 0; i < kinds.length; i++) {
        const kind = kinds[i] ?? 0;
        const node = nodes[i] ?? 0;
        if (kind === EventKind.Choice) flattenChoice(node, out);
        else messages.message(node, roleOf(kind), out, IN_EVENT, 0);
      }
      return true;
    },
  };
}
