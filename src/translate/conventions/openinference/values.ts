/** OpenInference's attributes that hold a whole side of a run: `input.value`, `output.value`, and what stands in for them. */
import { Node } from '../../document.ts';
import { ValueType } from '../../kernel/kernel.ts';
import { Group } from '../../keys.ts';
import type { Messages } from '../../messages/messages.ts';
import { RunType } from '../../span.ts';
import type { Source, Span } from '../../span.ts';
import type { Toolbox } from '../../toolbox.ts';
import { Loaded } from '../../value.ts';
import type { Wrapping } from '../../wrap.ts';

const CLOSE_OBJECT = 0x7d;
const TEXT_PLAIN = 'text/plain';

export interface WholeValues {
  readonly templateInputs: Source;
  readonly retrieverInputs: Source;
  readonly inputs: Source;
  readonly outputs: Source;
  /** Loads `output.value`; what it is, as `Loaded` says. */
  loadOutput(span: Span): number;
}

export function wholeValues(
  { kernel, keys, docs, values, lit }: Toolbox,
  { nodes }: Messages,
  wrapping: Wrapping,
): WholeValues {
  const key = {
    inputValue: keys.key('input.value', Group.Value),
    inputMime: keys.key('input.mime_type'),
    outputValue: keys.key('output.value', Group.Value),
    outputMime: keys.key('output.mime_type'),
    callArguments: keys.key('tool_call.function.arguments', Group.Value),
    variables: keys.key('llm.prompt_template.variables'),
  };
  const l = {
    queryOpen: lit('{"query":'),
    query: lit('query'),
    question: lit('question'),
    input: lit('input'),
  };

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
    if (node !== 0 && docs.type(node) === Node.String && nodes.filled(node) === 0) return false;
    if (node !== 0 && docs.type(node) === Node.Object) {
      const query =
        nodes.filled(docs.member(node, l.query)) ||
        nodes.filled(docs.member(node, l.question)) ||
        nodes.filled(docs.member(node, l.input));
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

  const loadOutput = (span: Span): number => loadValue(span, key.outputValue, key.outputMime);

  return {
    templateInputs: (span, out) => {
      if (span.runType !== RunType.Prompt) return false;
      if (values.loadKey(span.attributes, key.variables) !== Loaded.Document) return false;
      if (docs.type(values.node) !== Node.Object) return false;
      docs.copy(values.node, out);
      return true;
    },
    retrieverInputs,
    inputs: (span, out) =>
      wrapping.write(loadValue(span, key.inputValue, key.inputMime), 'input', span, out) ||
      wrapping.write(values.loadKey(span.attributes, key.callArguments), 'input', span, out),
    outputs: (span, out) => wrapping.outputs(loadOutput(span), span, out),
    loadOutput,
  };
}
