/**
 * Logfire / Pydantic AI.
 *
 * | Attributes                                              | Inputs                            | Outputs |
 * | ------------------------------------------------------- | --------------------------------- | ------- |
 * | `events` (list of logged message events)                | history                           | choices, or the trailing assistant message |
 * | `all_messages_events`, `pydantic_ai.all_messages`       | up to the last message of a user  | the rest |
 * | `final_result`                                          |                                   | `output` beside the rest, or as wrapped |
 * | `prompt`                                                | as wrapped                        | |
 * | `model_request_parameters`                              | `invocation_params.tools`         | |
 */
import { Node } from '../document.ts';
import type { NodeWord } from '../document.ts';
import { Draft } from '../draft.ts';
import { Group } from '../keys.ts';
import type { Messages } from '../messages/messages.ts';
import type { Source, Span } from '../span.ts';
import type { Toolbox } from '../toolbox.ts';
import { Loaded } from '../value.ts';
import type { Wrapping } from '../wrap.ts';
import type { Writer } from '../writer.ts';
import type { Conversation } from './conversation.ts';
import type { GenAi } from './genai.ts';

const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

export interface Pydantic {
  readonly promptInputs: Source;
  readonly conversationInputs: Source;
  readonly resultOutputs: Source;
  /** Writes the tools of `model_request_parameters`, normalised, each with a comma. */
  tools(span: Span, out: Writer): void;
}

export function pydantic(
  box: Toolbox,
  messages: Messages,
  wrapping: Wrapping,
  genAi: GenAi,
  conversation: Conversation,
): Pydantic {
  const { keys, docs, values, lit } = box;
  const draft = new Draft(box);
  const key = {
    prompt: keys.key('prompt', Group.Conversation),
    finalResult: keys.key('final_result', Group.Conversation),
    events: keys.key('all_messages_events', Group.Conversation),
    all: keys.key('pydantic_ai.all_messages', Group.Conversation),
    parameters: keys.key('model_request_parameters', Group.Tools),
  };
  const user = lit('"user"');
  const l = {
    role: lit('role'),
    user: lit('user'),
    messages: lit('{"messages":['),
    messagesIs: lit('"messages":['),
    outputIs: lit('"output":'),
    functionTools: lit('function_tools'),
    outputTools: lit('output_tools'),
  };

  /** The whole conversation, normalised, as an array that is not empty; or 0. */
  function load(span: Span): NodeWord {
    const { attributes } = span;
    if (attributes.has(key.events) && values.loadKey(attributes, key.events) === Loaded.Document) {
      const list = values.node;
      const start = draft.out.pos;
      draft.out.byte(OPEN_ARRAY);
      const isList = conversation.flatten(list, draft.out);
      if (isList) {
        draft.out.close(CLOSE_ARRAY);
        const array = draft.close(start);
        return array !== 0 && docs.count(array) > 0 ? array : 0;
      }
      draft.out.pos = start;
    }
    if (!attributes.has(key.all) || values.loadKey(attributes, key.all) !== Loaded.Document) return 0;
    if (docs.type(values.node) !== Node.Array) return 0;
    const list = values.node;
    const start = draft.out.pos;
    draft.out.byte(OPEN_ARRAY);
    messages.items(list, user, draft.out);
    draft.out.close(CLOSE_ARRAY);
    const array = draft.close(start);
    return array !== 0 && docs.count(array) > 0 ? array : 0;
  }

  /** The node after the last message of a user: where the outputs begin. */
  function split(array: NodeWord): NodeWord {
    let at = docs.first(array);
    const stop = docs.next(array);
    for (let item = at; item < stop; item = docs.next(item)) {
      const role = docs.member(item, l.role);
      if (role !== 0 && docs.is(role, l.user)) at = docs.next(item);
    }
    return at;
  }

  function copy(from: NodeWord, to: NodeWord, out: Writer): void {
    for (let item = from; item < to; item = docs.next(item)) {
      docs.copy(item, out);
      out.comma();
    }
  }

  return {
    promptInputs: (span, out) => wrapping.write(values.loadKey(span.attributes, key.prompt), 'input', span, out),
    conversationInputs: (span, out) => {
      const array = load(span);
      if (array === 0) return false;
      const at = split(array);
      if (at === docs.first(array)) return false;
      out.literal(l.messages);
      genAi.instructionsOf(span.attributes, out);
      copy(docs.first(array), at, out);
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    },
    resultOutputs: (span, out) => {
      const { attributes } = span;
      const array = load(span);
      if (array === 0) return wrapping.outputs(values.loadKey(attributes, key.finalResult), span, out);
      const start = out.pos;
      out.byte(OPEN_OBJECT);
      const at = split(array);
      if (at < docs.next(array)) {
        out.literal(l.messagesIs);
        copy(at, docs.next(array), out);
        out.close(CLOSE_ARRAY);
        out.comma();
      }
      const loaded = values.loadKey(attributes, key.finalResult);
      if (loaded !== Loaded.Absent) {
        out.literal(l.outputIs);
        values.copy(loaded, out);
        out.comma();
      }
      if (out.pos === start + 1) {
        out.pos = start;
        return false;
      }
      out.close(CLOSE_OBJECT);
      return true;
    },
    tools: (span, out) => {
      if (values.loadKey(span.attributes, key.parameters) !== Loaded.Document) return;
      const parameters = values.node;
      for (const name of [l.functionTools, l.outputTools]) {
        const list = docs.member(parameters, name);
        if (list !== 0 && docs.type(list) === Node.Array) messages.tools.definitions(list, out);
      }
    },
  };
}
