/**
 * What a graph worker needs of the state database, on one connection. One, because SQLite's waiting for a lock blocks the thread: two
 * connections of the same thread would wait for each other in vain.
 */
import type { SerializerProtocol } from '@langchain/langgraph-checkpoint';
import type { Clock } from '../../core/lifecycle.ts';
import { systemClock } from '../../core/lifecycle.ts';
import type { StateLocation } from '../store/location.ts';
import { DeploymentItems } from './items.ts';
import { openState } from './open.ts';
import { DeploymentSaver } from './saver.ts';
import type { BeforeWrite } from './saver.ts';

export interface GraphState {
  readonly items: DeploymentItems;
  /** A saver that writes values with this serializer; the library's own when none is given. */
  saver(serde?: SerializerProtocol): DeploymentSaver;
  /** After the savers have been closed. */
  close(): Promise<void>;
}

export async function openGraphState(
  location: StateLocation,
  { beforeWrite, clock = systemClock }: { beforeWrite?: BeforeWrite; clock?: Clock } = {},
): Promise<GraphState> {
  const state = await openState(location);
  const release = (): Promise<void> => Promise.resolve();
  return {
    items: new DeploymentItems(state, clock, release),
    saver: (serde) => new DeploymentSaver(state, { serde, release, beforeWrite }),
    close: () => state.db.destroy(),
  };
}
