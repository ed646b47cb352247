/**
 * GENERIC_OTEL_ENABLED: span attributes that no convention knows go into the metadata under their full key. A slow path:
 * makes a string of every key.
 */
import { Word } from './kernel/kernel.ts';
import type { Keys } from './keys.ts';
import { ClaimedKeys, Members } from './members.ts';
import type { GenericMembers } from './metadata.ts';
import { SPAN_ATTRIBUTES } from './metadata.ts';
import type { Toolbox } from './toolbox.ts';

/** Everything below these belongs to a convention, whether it is used on a span or not. */
const KNOWN_PREFIXES = [
  'langsmith.',
  'gen_ai.prompt.',
  'gen_ai.completion.',
  'gen_ai.aggregated_usage.',
  'llm.input_messages.',
  'llm.output_messages.',
  'llm.prompts.',
  'llm.choices.',
  'llm.tools.',
  'llm.request.functions.',
  'embedding.embeddings.',
  'retrieval.documents.',
  'reranker.input_documents.',
  'reranker.output_documents.',
  'traceloop.association.properties.',
  'ai.telemetry.metadata.',
  'ai.settings.context.',
  'ai.settings.runtimeContext.',
];
/** Known, but of no use to a run. */
const KNOWN_UNUSED = new Set(['pydantic_ai.new_message_index']);

export function genericMembers(box: Toolbox): GenericMembers {
  const { kernel, keys } = box;
  const recognised = new ClaimedKeys(box);
  const members = new Members(box);

  return (at, end, claimed, out) => {
    // Known keys are taken out of the list by claiming them, for as long as this list is written.
    recognised.begin();
    let pos = kernel.x.nextMember(at, end, SPAN_ATTRIBUTES);
    while (pos !== 0) {
      const keyAt = kernel.i32[Word.MemberKeyOff] ?? 0;
      const keyLength = kernel.i32[Word.MemberKeyLen] ?? 0;
      const key = Buffer.from(kernel.u8.subarray(keyAt, keyAt + keyLength)).toString('utf8');
      if (isKnown(keys, key)) recognised.claim(keyAt, keyLength);
      pos = kernel.x.nextMember(pos, end, SPAN_ATTRIBUTES);
    }
    members.write(at, end, SPAN_ATTRIBUTES, claimed, out, recognised);
  };
}

function isKnown(keys: Keys, key: string): boolean {
  return keys.knows(key) || KNOWN_UNUSED.has(key) || KNOWN_PREFIXES.some((prefix) => key.startsWith(prefix));
}
