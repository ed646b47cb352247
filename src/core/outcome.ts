/**
 * What can happen to a request, to an upload attempt, to a span. What we expect is a value of one of these types; what
 * should never happen is a thrown {@link Fault}. These codes also cross threads, where class identity does not survive:
 * always compare `kind` and `code`, never `instanceof`.
 */

/** Why a request was turned away for good: resending the same bytes would fail again. Status mapping: accept/reply.ts. */
export type RefusalCode =
  | 'malformed' // 400: not decodable
  | 'unauthenticated' // 401: no API key
  | 'forbidden' // 403
  | 'not-found' // 404
  | 'method-not-allowed' // 405
  | 'body-too-large' // 413: on the wire or after decompression
  | 'unsupported-media-type' // 415
  | 'unsupported-coding' // 415, lists what is supported
  | 'set-aside' // 400: decode threads died of this very body, which is kept as a dead letter
  | 'internal'; // 500: a defect of ours, found while handling this very request

/** Why a request is turned away for now; the client should resend. All are 503 with `Retry-After`. */
export type BusyCode =
  | 'in-flight-limit' // acceptor: too many bytes between socket and rings
  | 'rings-full' // shippers are behind (slow or absent backend)
  | 'starting'
  | 'draining'
  | 'worker-lost' // the decode thread died with this request in its hands
  | 'storage-unavailable' // durable mode: the journal cannot be written
  | 'journal-full'; // durable mode: the journal has reached its limit

/** Told to the sender; exactly one per request. `rejectedCount` spans were invalid one by one (partial success). */
export type Admission =
  | { kind: 'accepted'; acceptedCount: number; rejectedCount: number; message: string }
  | { kind: 'refused'; code: RefusalCode; message: string }
  | { kind: 'busy'; code: BusyCode; message: string; retryAfterMs: number };

/** Why an acknowledged span will not reach the backend. Every loss moves exactly one counter named by one of these. */
export type DropCode =
  | 'converter-dropped' // CONVERTER_MODULE returned null: the operator's wish
  | 'converter-failed' // CONVERTER_MODULE threw for this span
  | 'filtered' // FILTER_NON_GENAI: the operator's wish
  | 'duplicate' // same trace and span id seen a moment ago (a client's resend)
  | 'rejected-by-backend' // 4xx that a retry cannot mend, after bisecting to the single run
  | 'oversize' // still 413 when sent alone and truncated
  | 'shutdown-deadline' // not delivered when the shutdown deadline struck
  | 'spool-full' // disk limit: oldest first
  | 'spool-expired' // older than the spool's age limit
  | 'spool-damaged' // its bytes on disk are not what was written
  | 'spool-purged' // the operator's wish
  | 'worker-lost'; // died with a shipper thread and could not be reclaimed

/** Learned from one upload attempt; only the code that owns the batch acts on it. */
export type Verdict =
  | { kind: 'delivered'; again: boolean } // again: the backend had it already (409)
  | { kind: 'retry'; reason: string; retryAfterMs?: number }
  | { kind: 'split'; by: 'bytes' | 'runs'; reason: string } // 413 by bytes; 400, 422, 409 on a batch of more than one run
  | { kind: 'park'; reason: string } // 401, 403, 404: the tenant's or operator's to mend
  | { kind: 'rejected'; code: DropCode; reason: string };

/** A broken invariant. Ends the thread it happens in; no stage catches it, the owner of the thread counts and decides. */
export class Fault extends Error {
  override readonly name = 'Fault';
}
