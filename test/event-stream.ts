/** Reads `text/event-stream` as the wire has it, for tests that look closer than the published client does. */
export interface ServerEvent {
  event: string;
  data: unknown;
  id: string;
}

/** All events until the stream ends, or until `enough` says so. Throws when the connection breaks. */
export async function readEvents(
  response: Response,
  enough: (events: ServerEvent[]) => boolean = () => false,
): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  if (response.body === null) return events;
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = parse(text.slice(0, end));
      text = text.slice(end + 2);
      if (event !== null) events.push(event);
    }
    if (enough(events)) return events;
  }
  return events;
}

function parse(block: string): ServerEvent | null {
  const event: ServerEvent = { event: '', data: null, id: '' };
  for (const line of block.split('\n')) {
    if (line.startsWith(':')) continue;
    const colon = line.indexOf(': ');
    const value = line.slice(colon + 2);
    if (line.startsWith('event: ')) event.event = value;
    else if (line.startsWith('data: ')) event.data = JSON.parse(value);
    else if (line.startsWith('id: ')) event.id = value;
  }
  return event.event === '' ? null : event;
}
