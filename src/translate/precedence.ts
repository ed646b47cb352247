/**
 * Which convention fills inputs and outputs: the first row that has something to say. A convention is a file in
 * conventions/ and its lines here.
 */
import { conversation } from './conventions/conversation.ts';
import { genAi } from './conventions/genai.ts';
import { openInference } from './conventions/openinference.ts';
import { pydantic } from './conventions/pydantic.ts';
import { traceloop } from './conventions/traceloop.ts';
import { vercel } from './conventions/vercel.ts';
import type { EventReader } from './events.ts';
import type { Conventions } from './invocation.ts';
import { Mark } from './keys.ts';
import type { Messages } from './messages/messages.ts';
import { EventKind } from './span.ts';
import type { Source } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import { Loaded } from './value.ts';
import type { Wrapping } from './wrap.ts';

export interface Precedence {
  readonly inputs: Source;
  readonly outputs: Source;
  readonly conventions: Conventions;
}

export function precedence(box: Toolbox, messages: Messages, wrapping: Wrapping, events: EventReader): Precedence {
  const semantic = genAi(box, messages, wrapping);
  const told = conversation(box, messages, wrapping, events);
  const inference = openInference(box, messages, wrapping, semantic);
  const ai = vercel(box, messages, wrapping, semantic);
  const loop = traceloop(box, messages, wrapping);
  const logged = pydantic(box, messages, wrapping, semantic, told);
  const spanKind = box.keys.key('langsmith.span.kind');
  const operationId = box.keys.key('ai.operationId');
  const completion = box.keys.key('gen_ai.completion');

  /** The keys of row 1, on the last operation details event. */
  const fromDetails =
    (read: typeof semantic.structuredInputs): Source =>
    (span, out) => {
      const details = events.last(span, EventKind.OperationDetails);
      return details >= 0 && read(events.scan(details), span, out);
    };

  const legacyOutputs: Source = (span, out) =>
    wrapping.outputs(
      span.attributes.has(completion) ? box.values.loadKey(span.attributes, completion) : Loaded.Absent,
      span,
      out,
    );

  const inputRows: readonly Source[] = [
    /*  1 */ (span, out) => semantic.structuredInputs(span.attributes, span, out),
    /*  2 */ fromDetails(semantic.structuredInputs),
    /*  3 */ told.eventInputs,
    /*  4 */ inference.templateInputs,
    /*  5 */ semantic.retrievalInputs,
    /*  5 */ inference.rerankerInputs,
    /*  5 */ inference.embeddingInputs,
    /*  5 */ semantic.toolInputs,
    /*  5 */ inference.retrieverInputs,
    /*  6 */ semantic.indexedInputs,
    /*  7 */ inference.messageInputs,
    /*  8 */ ai.inputs,
    /*  9 */ inference.valueInputs,
    /* 10 */ loop.entityInputs,
    /* 11 */ semantic.legacyInputs,
    /* 12 */ logged.promptInputs,
    /* 13 */ told.loggedInputs,
    /* 13 */ logged.conversationInputs,
    /* no row */ semantic.instructionInputs,
  ];

  const outputRows: readonly Source[] = [
    /*  1 */ (span, out) => semantic.structuredOutputs(span.attributes, span, out),
    /*  2 */ fromDetails(semantic.structuredOutputs),
    /*  3 */ told.eventOutputs,
    /*  5 */ semantic.retrievalOutputs,
    /*  5 */ inference.retrieverOutputs,
    /*  5 */ inference.rerankerOutputs,
    /*  5 */ inference.embeddingOutputs,
    /*  5 */ semantic.toolOutputs,
    /*  6 */ semantic.indexedOutputs,
    /*  7 */ inference.messageOutputs,
    /*  8 */ ai.outputs,
    /*  9 */ inference.valueOutputs,
    /* 10 */ loop.entityOutputs,
    /* 11 */ legacyOutputs,
    /* 12 */ logged.resultOutputs,
    /* 13 */ told.loggedOutputs,
  ];

  /**
   * `exporter` comes first on spans of the backend's own exporters, which write inputs and outputs there verbatim; but
   * not on AI SDK spans, which the exporter rewrites, losing text beside tool calls.
   */
  const firstOf =
    (exporter: Source, rows: readonly Source[]): Source =>
    (span, out) => {
      const { attributes, marks } = span;
      if ((marks & Mark.Langsmith) !== 0 && attributes.has(spanKind) && !attributes.hasText(operationId)) {
        if (exporter(span, out)) return true;
      }
      for (const row of rows) if (row(span, out)) return true;
      return false;
    };

  return {
    inputs: firstOf(semantic.legacyInputs, inputRows),
    outputs: firstOf(legacyOutputs, outputRows),
    conventions: { genAi: semantic, openInference: inference, traceloop: loop, vercel: ai, pydantic: logged },
  };
}
