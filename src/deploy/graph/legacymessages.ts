/**
 * The stream mode `messages`: whole messages as they grow (`messages/partial`), each announced once (`messages/metadata`), and
 * final ones as the state takes them in (`messages/complete`). Newer clients ask for `messages-tuple`. Runs in graph workers.
 */
import type { BaseMessageChunk } from '@langchain/core/messages';
import type { StreamEvent } from '@langchain/core/tracers/log_stream';
import type { JsonText } from '../store/model.ts';
import { render } from './render.ts';

export interface LegacyMessages {
  /** `isOwn`: the event carries a chunk of the graph's own stream. */
  take(event: StreamEvent, isOwn: boolean, subgraphs: boolean): void;
}

export function legacyMessages(emit: (event: string, dataJson: JsonText) => void): LegacyMessages {
  const growing = new Map<string, BaseMessageChunk>();
  const completed = new Set<string>();

  const takeValues = (chunk: unknown, subgraphs: boolean): void => {
    const [mode, payload] = (subgraphs ? (chunk as unknown[]).slice(1) : chunk) as [string, unknown];
    if (mode !== 'values' && mode !== 'updates') return;
    if (typeof payload !== 'object' || payload === null || !('messages' in payload)) return;
    const fresh: unknown[] = [];
    for (const message of [payload.messages].flat() as { id?: string }[]) {
      if (message.id === undefined || completed.has(message.id)) continue;
      completed.add(message.id);
      fresh.push(message);
    }
    if (fresh.length > 0) emit('messages/complete', render(fresh));
  };

  const takeToken = (event: StreamEvent): void => {
    const message = event.data.chunk as BaseMessageChunk;
    if (message.id === undefined) return;
    const before = growing.get(message.id);
    if (before === undefined) emit('messages/metadata', render({ [message.id]: { metadata: event.metadata } }));
    const whole = before === undefined ? message : before.concat(message);
    growing.set(message.id, whole);
    emit('messages/partial', render([whole]));
  };

  return {
    take: (event, isOwn, subgraphs) => {
      if (isOwn) takeValues(event.data.chunk, subgraphs);
      else if (event.event === 'on_chat_model_stream' && event.tags?.includes('nostream') !== true) takeToken(event);
    },
  };
}
