/**
 * Where batches wait that cannot be delivered now, oldest first and by API key. This one is memory: it keeps what it is
 * given and the shipper stops reading when it is full. `spool/spool.ts` is the one on disk.
 */
import type { Tenant } from '../core/run.ts';
import type { Kept, Parcel } from './parcel.ts';

export interface Shelf {
  /** What waits here survives the process, as far as is known: nobody has to wait for it at the end. */
  readonly isDurable: boolean;
  /** Takes the parcel. One that was taken from here goes back to its place. */
  offer(parcel: Parcel): void;
  /** The key's oldest parcel, which is the caller's again; none when there is none, or it has to be fetched first. */
  take(tenant: Tenant): Parcel | undefined;
  /** What was taken from here, or not, is settled: delivered, dropped, or kept elsewhere. */
  settle(kept: Kept): void;
  count(tenant: Tenant): number;
  /** Memory that the key's parcels take here. */
  tenantBytes(tenant: Tenant): number;
  /** Whose parcels wait here; a key's tenant is the one that brought it first. */
  tenants(): Iterable<Tenant>;
  readonly totalCount: number;
  readonly runCount: number;
  /** Memory that the parcels take here. */
  readonly memoryBytes: number;
  /** Set by the owner: hears when there may be something to take, or room, that was not there before. */
  onChange: () => void;
  /** Puts away what can be, and gives back what would be lost with the process. Nothing is called afterwards. */
  close(): Promise<Parcel[]>;
}

export function createMemoryShelf(): Shelf {
  const parcels = new Map<string, Parcel[]>();
  const bytesOf = new Map<string, number>();
  let totalCount = 0;
  let runCount = 0;
  let memoryBytes = 0;
  const book = (parcel: Parcel, sign: 1 | -1): void => {
    totalCount += sign;
    runCount += sign * parcel.batch.runCount;
    const { tenant, body } = parcel.batch;
    memoryBytes += sign * body.length;
    bytesOf.set(tenant.apiKey, (bytesOf.get(tenant.apiKey) ?? 0) + sign * body.length);
  };
  return {
    isDurable: false,
    onChange: () => undefined,
    offer(parcel) {
      const { apiKey } = parcel.batch.tenant;
      const queue = parcels.get(apiKey);
      if (queue === undefined) parcels.set(apiKey, [parcel]);
      else queue.push(parcel);
      book(parcel, 1);
    },
    take({ apiKey }) {
      const queue = parcels.get(apiKey);
      const parcel = queue?.shift();
      if (parcel === undefined) return undefined;
      book(parcel, -1);
      if (queue?.length === 0) {
        parcels.delete(apiKey);
        bytesOf.delete(apiKey);
      }
      return parcel;
    },
    settle: () => undefined,
    count: ({ apiKey }) => parcels.get(apiKey)?.length ?? 0,
    tenantBytes: ({ apiKey }) => bytesOf.get(apiKey) ?? 0,
    tenants: () => [...parcels.values()].flatMap(([first]) => (first === undefined ? [] : [first.batch.tenant])),
    get totalCount() {
      return totalCount;
    },
    get runCount() {
      return runCount;
    },
    get memoryBytes() {
      return memoryBytes;
    },
    close() {
      const left = [...parcels.values()].flat();
      parcels.clear();
      for (const parcel of left) book(parcel, -1);
      bytesOf.clear();
      return Promise.resolve(left);
    },
  };
}
