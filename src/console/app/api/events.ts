/** Server-sent events over `fetch`: `EventSource` cannot send a key. */
import { createParser } from 'eventsource-parser';

export interface ServerEvent {
  /** `message` where the server names none. */
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

/** Resolves at the end of the answer; rejects when the connection breaks. */
export async function readEvents(response: Response, onEvent: (event: ServerEvent) => void): Promise<void> {
  if (response.body === null) return;
  const parser = createParser({
    onEvent: ({ event, data, id }) => onEvent({ event: event ?? 'message', data, id }),
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.feed(value);
  }
}
