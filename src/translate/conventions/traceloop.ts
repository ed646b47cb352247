/**
 * Traceloop / OpenLLMetry, and the Model Context Protocol keys that share their row.
 *
 * | Attributes                                                               | Inputs     | Outputs |
 * | ------------------------------------------------------------------------ | ---------- | ------- |
 * | `traceloop.entity.input`, `gen_ai.task.input`, `mcp.request.argument`    | as wrapped |         |
 * | `traceloop.entity.output`, `gen_ai.task.output`, `mcp.response.value`    |            | as wrapped |
 * | `llm.request.functions.N.{name,description,parameters}`                  | `invocation_params.tools` | |
 */
import { Draft } from '../draft.ts';
import { Group } from '../keys.ts';
import type { Messages } from '../messages/messages.ts';
import type { Source, Span } from '../span.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Wrapping } from '../wrap.ts';
import type { Writer } from '../writer.ts';

const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const Field = { Name: 1, Description: 2, Parameters: 3, Arguments: 4 } as const;

export interface Traceloop {
  readonly entityInputs: Source;
  readonly entityOutputs: Source;
  /** Writes the request's functions as tool definitions, each with a comma. */
  functions(span: Span, out: Writer): void;
}

export function traceloop(box: Toolbox, messages: Messages, wrapping: Wrapping): Traceloop {
  const { kernel, keys, values, view, families, lit } = box;
  const draft = new Draft(box);
  const inputs = ['traceloop.entity.input', 'gen_ai.task.input', 'mcp.request.argument'].map((name) =>
    keys.key(name, Group.Entity),
  );
  const outputs = ['traceloop.entity.output', 'gen_ai.task.output', 'mcp.response.value'].map((name) =>
    keys.key(name, Group.Entity),
  );
  const functions = families.declare([
    ['llm.request.functions.#.name', Field.Name],
    ['llm.request.functions.#.description', Field.Description],
    ['llm.request.functions.#.parameters', Field.Parameters],
    ['llm.request.functions.#.arguments', Field.Arguments],
  ]);
  const l = { name: lit('"name":'), description: lit('"description":'), parameters: lit('"parameters":') };

  return {
    entityInputs: (span, out) => {
      for (const key of inputs) {
        if (wrapping.write(values.loadKey(span.attributes, key), 'input', span, out)) return true;
      }
      return false;
    },
    entityOutputs: (span, out) => {
      for (const key of outputs) {
        if (wrapping.outputs(values.loadKey(span.attributes, key), span, out)) return true;
      }
      return false;
    },
    functions: (span, out) => {
      if ((span.families & functions) === 0) return;
      view.select(span.attributes, functions);
      for (let from = 0; from < view.count;) {
        const to = view.groupEnd(from);
        const start = draft.out.pos;
        draft.out.byte(OPEN_OBJECT);
        const name = view.find(from, to, Field.Name);
        if (name >= 0) draft.member(l.name, view.type(name), view.a(name), view.b(name));
        const description = view.find(from, to, Field.Description);
        if (description >= 0) {
          draft.member(l.description, view.type(description), view.a(description), view.b(description));
        }
        let parameters = view.find(from, to, Field.Parameters);
        if (parameters < 0) parameters = view.find(from, to, Field.Arguments);
        if (parameters >= 0)
          draft.document(l.parameters, view.type(parameters), view.a(parameters), view.b(parameters));
        const isEmpty = kernel.u8[draft.out.pos - 1] === OPEN_OBJECT;
        draft.out.close(CLOSE_OBJECT);
        const definition = draft.close(start);
        if (definition !== 0 && !isEmpty) messages.tools.definition(definition, out);
        from = to;
      }
    },
  };
}
