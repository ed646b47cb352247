/**
 * The long-term store as a graph sees it, on the same items that the API serves. Comes in: operations of a graph. Goes out:
 * committed rows. It owns its connection and holds nothing between calls. There is no vector index: `query` does not rank.
 */
import { BaseStore } from '@langchain/langgraph-checkpoint';
import type { Item, Operation, OperationResults } from '@langchain/langgraph-checkpoint';
import type { Clock } from '../../core/lifecycle.ts';
import { systemClock } from '../../core/lifecycle.ts';
import { createItemRepository } from '../store/items.ts';
import type { StateDatabase } from '../store/database.ts';
import type { StateLocation } from '../store/location.ts';
import type { JsonObject, JsonText, StoreItem } from '../store/model.ts';
import type { ItemRepository } from '../store/repositories.ts';
import { openState } from './open.ts';

export class DeploymentItems extends BaseStore {
  readonly #release: () => Promise<void>;
  readonly #items: ItemRepository;
  readonly #clock: Clock;

  constructor(state: StateDatabase, clock: Clock, release = () => state.db.destroy()) {
    super();
    this.#release = release;
    this.#items = createItemRepository(state);
    this.#clock = clock;
  }

  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results: unknown[] = [];
    // In order: a later operation of a batch sees the earlier ones.
    for (const operation of operations) results.push(await this.#apply(operation));
    return results as OperationResults<Op>;
  }

  async close(): Promise<void> {
    await this.#release();
  }

  async #apply(operation: Operation): Promise<unknown> {
    const nowMs = this.#clock.nowMs();
    if ('namespacePrefix' in operation) {
      const found = await this.#items.search(
        {
          namespacePrefix: operation.namespacePrefix,
          filter: (operation.filter ?? null) as JsonObject | null,
          query: operation.query ?? null,
        },
        { limit: operation.limit ?? 10, offset: operation.offset ?? 0 },
        nowMs,
      );
      return found.map(({ item }) => itemOf(item));
    }
    if ('value' in operation) {
      const { namespace, key, value } = operation;
      if (value === null) await this.#items.delete(namespace, key);
      else {
        const valueJson = JSON.stringify(value) as JsonText;
        await this.#items.put({ namespace, key, valueJson, ttlMs: null }, nowMs);
      }
      return undefined;
    }
    if ('key' in operation) {
      const item = await this.#items.get(operation.namespace, operation.key, true, nowMs);
      return item === null ? null : itemOf(item);
    }
    const conditions = operation.matchConditions ?? [];
    const path = (type: 'prefix' | 'suffix'): string[] | null =>
      conditions.find((condition) => condition.matchType === type)?.path ?? null;
    return this.#items.namespaces(
      { prefix: path('prefix'), suffix: path('suffix'), maxDepth: operation.maxDepth ?? null },
      { limit: operation.limit, offset: operation.offset },
      nowMs,
    );
  }
}

export async function openGraphStore(location: StateLocation, clock: Clock = systemClock): Promise<DeploymentItems> {
  return new DeploymentItems(await openState(location), clock);
}

function itemOf(item: StoreItem): Item {
  return {
    namespace: item.namespace,
    key: item.key,
    value: JSON.parse(item.valueJson) as Record<string, unknown>,
    createdAt: new Date(item.createdMs),
    updatedAt: new Date(item.updatedMs),
  };
}
