/** The stream of a thread: everything that its runs emit, or only that they begin and end, until the client goes. It may come back. */
import type { HttpRequest, HttpResponse } from '../../core/http.ts';
import { queryList } from '../body.ts';
import { problem } from '../problem.ts';
import { StreamReader } from '../streamreader.ts';
import type { Runs } from '../runs.ts';
import type { DeploymentStore } from '../store/repositories.ts';
import { createThreadFollower, FOLLOW_MODES, type FollowMode } from '../threadstream.ts';
import { eventStream, type ConnectionSettings } from './connection.ts';

export interface FollowSettings extends ConnectionSettings {
  store: DeploymentStore;
  runs: Runs;
}

export async function followThread(
  settings: FollowSettings,
  request: HttpRequest,
  threadId: string,
  query: URLSearchParams,
): Promise<HttpResponse> {
  const { runs, store } = settings;
  const asked = queryList(query, 'stream_modes') ?? queryList(query, 'stream_mode') ?? ['run_modes'];
  const isKnown = (mode: string): mode is FollowMode => (FOLLOW_MODES as readonly string[]).includes(mode);
  const unknown = asked.find((mode) => !isKnown(mode));
  if (unknown !== undefined) return problem('invalid', `stream_mode: must be among ${FOLLOW_MODES.join(', ')}`);
  const modes = new Set(asked.filter(isKnown));
  if ((await store.threads.get(threadId)) === null) return problem('not-found', `Thread ${threadId} not found`);

  const reader = new StreamReader(settings, null);
  const follower = createThreadFollower({ reader, modes, maxHeldBytes: settings.maxBufferedBytes });
  runs.followThread(threadId, follower);
  reader.onLeave(() => runs.unfollowThread(threadId, follower));
  const lastEventId = request.header('last-event-id');
  if (lastEventId !== '') {
    const source = { store, settled: (id: string) => runs.settledEvents(id) };
    follower.replay(source, threadId, lastEventId).catch((error: unknown) => {
      settings.log.error({ err: error, threadId }, 'what a thread has told could not be replayed; the stream is cut');
      reader.abort();
    });
  }
  // A client that loses the connection comes back to the same place, with the last id that it has seen.
  const path = `/threads/${threadId}/stream`;
  const question = request.query === '' ? '' : `?${request.query}`;
  const headers = { 'content-location': path, location: `${path}${question}` };
  return eventStream(request, reader, headers, () => undefined);
}
