/**
 * The list of attacks and faults that systems of this kind have met, each with the tests that stand for it. A test here
 * looks whether those are still there under that name; what they prove, they say themselves.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

/** Group and case → file and words of a title in it (of a title that is put together: words that stand in the source). */
const CASES: Readonly<Record<string, readonly (readonly [file: string, words: string])[]>> = {
  '1 compression bombs in gzip, deflate, zstd, inflated no further than the limit': [
    ['hostile/bodies', 'bombs of 1:1000 in ${coding} are 413, and inflated no further than the limit'],
    ['unit/inflate', 'one byte more than the limit is too large, and so is a bomb'],
    ['flow/backend-intake', 'bombs 413'],
  ],
  '1 brotli': [['hostile/bodies', 'brotli and other codings that nobody offered are 415']],
  '1 lying frame sizes, zstd window of 2 GiB': [
    ['hostile/bodies', 'zstd frames that lie about their size, or want a window of 2 GiB'],
    ['unit/inflate', 'a frame that lies about its size or wants a huge window costs no memory'],
  ],
  '1 truncated and concatenated frames': [
    ['hostile/bodies', 'streams cut short are 400, streams one after the other are one body'],
    ['unit/inflate', 'a stream cut short anywhere is malformed'],
  ],
  '2 stacked, unknown, duplicate Content-Encoding': [
    ['hostile/bodies', 'stacked, unknown, repeated and empty codings'],
    ['flow/http-face', 'codings are told, and never stacked'],
  ],
  '3 body at the limit, one less, one more': [
    ['hostile/bodies', 'the limit is exact in every coding'],
    ['flow/http-face', 'a declared length over the limit is 413 before the body is sent'],
  ],
  '3 chunked without length': [
    ['flow/http-face', 'a chunked body is accepted up to the limit and 413 one byte beyond'],
    ['flow/http-face', 'a chunked body without end is cut after a bounded amount'],
  ],
  '3 flood of chunk extensions and trailers': [
    ['hostile/bodies', 'chunks with endless extensions, and endless trailers'],
  ],
  '3 slow heads and bodies': [
    ['hostile/connections', 'hundreds of heads and bodies that trickle in'],
    ['hostile/connections', 'a head that never ends is cut by the server'],
    ['flow/http-face', 'small and large, by byte'],
  ],
  '3 aborted uploads': [
    ['hostile/bodies', 'uploads that are broken off, at any point and by the hundred'],
    ['flow/http-face', 'an upload that is broken off gives back what it held'],
  ],
  '4 protobuf nested 10 000 deep, groups, lengths, wrong wire types, unknown fields, packed, empty': [
    ['hostile/bodies', 'arrays nested 10 000 deep'],
    ['hostile/bodies', 'groups nested 10 000 deep'],
    ['hostile/bodies', 'a length of 2^62'],
    ['hostile/bodies', 'a name of the wrong wire type'],
    ['hostile/bodies', 'unknown fields of every wire type'],
    ['hostile/bodies', 'a packed list where single ones belong'],
    ['hostile/bodies', 'a message of no bytes'],
    ['unit/vectors-hostile', 'arrays nested ten thousand deep are refused or dropped'],
  ],
  '4 invalid UTF-8': [
    ['hostile/bodies', 'invalid UTF-8 everywhere'],
    ['unit/vectors-hostile', 'invalid UTF-8 is replaced'],
  ],
  '5 JSON depth': [
    ['hostile/documents', 'an unknown field nested 100 000 deep'],
    ['hostile/documents', 'arrays of attributes nested 10 000 deep'],
    ['unit/vectors-hostile', 'a million brackets are text'],
  ],
  '5 duplicate keys': [
    ['hostile/documents', 'of equal keys the last counts'],
    ['unit/vectors-hostile', 'of equal keys the last wins, and only one is written'],
    ['fuzz/seeds', 'what was found wrong once'],
  ],
  '5 __proto__, constructor, prototype in every key position': [
    ['hostile/documents', 'is data wherever a key can be'],
    ['unit/vectors-hostile', 'is data as attribute, as metadata, and inside documents'],
    ['flow/deploy-http', 'a key that reaches a prototype'],
  ],
  '5 numbers beyond 2^53 as numbers and strings': [
    ['hostile/documents', 'numbers beyond 2^53 keep their digits'],
    ['unit/vectors-hostile', 'numbers of documents keep their digits'],
  ],
  '5 base64 and hex ids': [
    ['flow/pipeline', 'ids as hex and as base64 are the same ids'],
    ['unit/vectors-hostile', 'escapes in ids, times, enums, numbers and base64'],
  ],
  '5 enums as names and numbers': [['hostile/documents', 'enums by name and by number']],
  '5 byte order mark': [['hostile/documents', 'a byte order mark before the document']],
  '5 lone surrogates, NUL in keys and values': [
    ['hostile/documents', 'lone surrogates and NULs in keys and values'],
    ['unit/vectors-hostile', 'lone surrogates of documents are replaced'],
  ],
  '6 ids empty, zero, of wrong length': [
    ['hostile/documents', 'rejects that span alone, and says so'],
    ['unit/vectors-defects', 'spans with ids of wrong length or of zeros are rejected'],
  ],
  '6 timestamps negative, far in the future, end before start': [
    ['hostile/documents', 'clock nonsense'],
    ['unit/vectors-hostile', 'times of zero, reversed and beyond doubles'],
  ],
  '6 parent cycle, self parent': [
    ['hostile/documents', 'a span that is its own parent is a root; a cycle of parents'],
    ['unit/assemble/assembler', 'cycles and self-parents end as orphans'],
  ],
  '6 10 000 children before the parent': [
    ['hostile/documents', 'ten thousand children before their parent'],
    ['unit/assemble/assembler', 'forty thousand children before their parent, and a chain of forty thousand'],
  ],
  '6 parent that never arrives': [
    ['flow/pipeline', 'spans whose parent never came are delivered at the stop'],
    ['unit/assemble/assembler', 'orphans leave after their time to live'],
  ],
  '6 duplicate span': [
    ['hostile/documents', 'a span that comes again'],
    ['unit/assemble/assembler', 'a span seen before is dropped and counted'],
  ],
  '6 trace of 10 000 spans': [['hostile/documents', 'ten thousand spans of one trace in one request']],
  '6 huge attribute': [
    ['hostile/documents', 'an attribute of 100 MB rejects its span'],
    ['hostile/documents', 'an attribute of 100 MB, ${coding}, rejects its span'],
    ['flow/pipeline', 'a span larger than a ring takes arrives whole'],
  ],
  '7 header injection in project and key': [
    ['hostile/requests', 'keys and projects that could become further headers upstream'],
    ['flow/http-face', 'keys and projects that could forge a header'],
    ['hostile/requests', 'odd keys, cookies, origins, ids and types on every endpoint'],
    ['hostile/ports', 'odd headers are no defect, and split no answer'],
  ],
  '7 oversize headers': [['hostile/requests', 'heads beyond their size are 431 on every endpoint']],
  '7 pipelining': [['hostile/requests', 'requests sent one behind the other without waiting']],
  '7 CL + TE smuggling': [
    ['hostile/requests', 'a body whose end two readers would see in two places'],
    ['hostile/ports', 'ends that two readers would see in two places'],
    ['flow/http-face', 'lengths that two servers could read differently'],
  ],
  '7 %2F, dots, absolute form, malformed escapes on every endpoint': [
    ['hostile/requests', 'malformed escapes, dots, slashes and queries on every endpoint'],
    ['hostile/requests', 'an escaped slash stays inside its parameter'],
    ['hostile/requests', 'targets in absolute form, as authority, or none at all'],
    ['hostile/ports', 'malformed targets and methods'],
    ['unit/deploy/router', 'never throws, whatever the path'],
  ],
  '8 two tenants in one batch': [
    ['flow/pipeline', 'two keys interleaved in the same moment never share an upload or a tenant'],
    ['unit/upload/batcher', 'tenants never share a batch'],
    ['unit/assemble/assembler', 'the same trace under two API keys is two traces'],
  ],
  'tenants apart': [
    ['hostile/tenants', 'a revoked key, a forbidden one and an exhausted quota under load'],
    ['flow/spool', 'a revoked key and an exhausted quota wait on disk'],
    ['unit/upload/outbox', 'fills half of what is held and loses its oldest'],
  ],
  '9 every status': [
    ['hostile/egress', 'is tried again until it is taken'],
    ['hostile/egress', 'gives the run up, with its reason counted'],
    ['hostile/egress', 'keeps the run: not the run'],
    ['unit/upload/outbox', 'is narrowed down to the bad run'],
    ['unit/upload/outbox', 'Retry-After wins over the backoff'],
  ],
  '9 resets at each byte': [
    ['hostile/links', 'cut off (${then}) after each of its bytes'],
    ['hostile/links', 'a request reset after more and more of its bytes'],
  ],
  '9 endless and huge responses': [
    ['hostile/links', 'an answer of a gigabyte, and one without end'],
    ['flow/upload-client', 'an endless answer is read up to its bound'],
  ],
  '9 redirect: the key does not follow': [
    ['hostile/egress', 'to another host: the key does not follow'],
    ['flow/upload-client', 'a redirect is an answer'],
  ],
  '9 TLS failure': [
    ['hostile/links', 'a certificate that nobody signed'],
    ['hostile/tls', 'a certificate that has expired'],
    ['hostile/tls', 'a certificate of another host'],
    ['hostile/tls', 'plain HTTP where TLS should be'],
  ],
  '9 DNS change': [
    ['hostile/links', 'a name that does not resolve keeps the run'],
    ['hostile/dns', 'is followed within the life of a connection'],
    ['hostile/dns', 'is followed at once when the old address is gone'],
    ['hostile/dns', 'a resolver that never answers'],
  ],
  '9 half-open sockets': [
    ['hostile/links', 'a socket that accepts and never reads'],
    ['hostile/links', 'connections that were in use and fall silent'],
  ],
  '9 a byte now and then, read or sent': [
    ['hostile/links', 'one that sends a byte now and then'],
    ['hostile/links', 'an answer whose body trickles in'],
    ['hostile/links', 'a backend that reads a byte now and then'],
  ],
  '10 outage and its end without a thundering herd': [
    ['unit/upload/outbox', 'after an outage uploads grow from one at a time'],
    ['flow/pipeline', 'while the backend is down spans are taken'],
  ],
  '10 partial failure, and what cannot be retried does not block': [
    ['unit/upload/outbox', 'one batch that always fails does not hold up the others'],
    ['property/outbox', 'every good run arrives and every run is accounted for'],
  ],
  '11 kill -9 at any instant': [
    ['fault/journal-kill', 'what was acknowledged before a kill -9'],
    ['unit/upload/spool', 'what was attempted before a kill may have arrived'],
  ],
  '11 kill -9 and power cut at every write, rename and flush': [
    ['property/journal-powercut', 'at any operation: what was acknowledged is found again'],
    ['property/spool-powercut', 'at any operation: the spool opens, has what it promised'],
    ['fault/spool-disk', 'wherever that is interrupted'],
  ],
  '11 EIO on every operation, full disk on every write': [
    ['fault/journal-disk', 'at each operation: nothing acknowledged is lost'],
    ['fault/spool-disk', 'at each operation of the spool: no batch is lost'],
  ],
  '11 poison that ends the process at each start': [
    ['fault/journal-poison', 'a body that ends the process at each start'],
  ],
  '11 upgrade and downgrade of the format': [
    ['unit/journal/journal', 'a segment of another version is told'],
    ['unit/upload/spool', 'segments of another version are told'],
  ],
  '11 clock jump': [
    ['unit/journal/journal', 'a clock that jumps by years'],
    ['unit/upload/spool', 'a clock that jumps, or has gone mad'],
  ],
  '11 torn tail, zeros, bit flips, CRC mismatch in the middle': [
    ['unit/upload/spool', 'a file cut at any byte of its last record'],
    ['unit/upload/spool', 'a byte that changed anywhere costs its own record alone'],
    ['unit/journal/segmentfiles', 'a tail cut off at every byte of the last body'],
    ['unit/journal/segmentfiles', 'every single damaged byte of the middle body costs that body alone'],
  ],
  '11 disk full, read-only, failing or silent': [
    ['unit/upload/spool', 'a folder that cannot be written keeps batches in memory'],
    ['unit/journal/journal', 'a failing disk: busy, never accepted'],
    ['unit/journal/journal', 'a disk that does not answer'],
  ],
  '11 restart with more on disk than the limit': [
    ['unit/journal/journal', 'a start with more on disk than the limit allows'],
    ['unit/upload/spool', 'beyond its limit the oldest go'],
  ],
  '11 two processes on one directory': [
    ['unit/journal/journal', 'a second process on the folder does not start'],
    ['unit/upload/spool', 'one process at a time has the folder'],
  ],
  '12 SIGTERM under load and in an outage, second SIGTERM': [
    ['flow/process', 'SIGTERM under load delivers everything that was accepted'],
    ['flow/process', 'a second signal ends at once'],
    ['hostile/process', 'under load in an outage'],
  ],
  '12 heap near its limit': [
    ['hostile/process', 'with little more than the main thread needs at rest'],
    ['fault/shipper-thread-death', 'a shipper whose memory is used up'],
    ['fault/decode-thread-death', 'costs the bodies in its hands'],
  ],
  '12 configuration read again': [
    ['hostile/process', 'nothing is read again, so that another configuration is a restart'],
  ],
  '12 a stall of the event loop and of the whole process': [
    ['hostile/process', 'for five seconds: what was acknowledged arrives meanwhile'],
    ['hostile/connections', 'stopped for a while (SIGSTOP) and woken again'],
  ],
  '12 death of a thread': [
    ['fault/decode-thread-death', 'costs the bodies in its hands'],
    ['fault/shipper-thread-death', 'a dead shipper is replaced'],
    ['fault/ready', 'where no decode thread lives long enough'],
    ['fault/durable-thread-death', 'again and again: 503 and a reason meanwhile'],
  ],
  '12 no descriptor left': [['hostile/connections', 'with no descriptor left the program stays']],
  '12 idle connections by the thousand': [['hostile/connections', 'idle connections cost little']],
  '13 webhooks into private networks, by every spelling, port, user and relative URL': [
    ['unit/deploy/webhook-policy', 'http://2130706433/'],
    ['unit/deploy/webhook-policy', 'http://169.254.169.254/latest/meta-data/'],
    ['unit/deploy/webhook-policy', 'http://[::ffff:127.0.0.1]/'],
    ['hostile/api-webhooks', 'are refused with their reason by every route that takes one, in every spelling'],
  ],
  '13 DNS rebinding and redirects': [
    ['flow/deploy-webhooks', 'are refused at sending when the name has come to point inside'],
    ['flow/deploy-webhooks', 'go to the address that was checked, also when the name changes its mind'],
    ['flow/deploy-webhooks', 'do not follow redirects'],
  ],
  '13 secrets in logs, signatures, replay': [
    ['hostile/api-webhooks', 'stand in no log line'],
    ['hostile/api-webhooks', 'prove each attempt: signed anew with its own time under one id'],
    ['flow/log-scan', 'no key, password or span content in any log line'],
  ],
  '14 keys as SQL and JSON paths': [
    ['unit/deploy/hostilekeys', 'stay data: '],
    ['property/json-contains', 'agrees with PostgreSQL on what contains what'],
    ['hostile/api-input', 'cannot reach a prototype by any body of the API'],
  ],
  '14 unknown fields are honoured, refused or named': [
    ['flow/deploy-runs', 'what would change behaviour and is not understood is refused with its path'],
    ['flow/deploy-runs', 'what is accepted without effect is named in the answer'],
  ],
  '14 NUL, half pairs, depth, size, endless lists': [
    ['hostile/api-input', 'NUL in a path'],
    ['hostile/api-input', 'nested a hundred thousand levels deep is refused by every route'],
    ['hostile/api-input', 'of a million wrong entries costs one complaint'],
    ['hostile/api-input', 'of 33 MiB is 413, and counted'],
  ],
  '15 ids of others on every route': [
    ['hostile/api-routes', 'find nothing: a run under another thread, by any route'],
    ['hostile/api-routes', 'find nothing: threads, crons and assistants that are not there, by any route'],
    ['hostile/api-routes', "find nothing: another thread's checkpoints"],
  ],
  '15 ownership overwrite through metadata, path confusion, headers': [
    ['hostile/api-routes', 'are not taken over by metadata or config'],
    ['hostile/api-routes', 'what a client says in metadata comes back in no header'],
    ['hostile/api-paths', 'lead to no other resource than the one that they spell'],
    ['hostile/api-paths', 'get nobody past the keys, on any route'],
  ],
  '16 two runs on one thread for each strategy, cancel races, retries of requests': [
    ['hostile/api-races', 'two runs on one thread at the same moment, ${strategy}'],
    ['hostile/api-races', 'a cancel against the end of its run, against itself'],
    ['hostile/api-races', 'requests that are sent again'],
    ['flow/deploy-multitask', 'rollback removes the run that it stops with every checkpoint'],
  ],
  '16 death of a worker or of the process in mid-run, lease lost': [
    ['fault/graph-worker', 'costs its worker, is tried three times from its last checkpoint'],
    ['fault/deploy-restart', 'after kill -9 in mid-run the run goes on from its last checkpoint'],
    ['fault/deploy-callback-restart', 'a webhook that was on its way when the process was killed'],
    ['fault/deploy-callback-restart', 'fires once at the start, and not again after a kill right then'],
    ['fault/deploy-callback-restart', 'the run of a cron whose process was killed in the middle of it'],
    ['unit/deploy/leases', 'are renewed by who holds them before it looks for lost runs'],
    ['hostile/api-races', 'ends the attempt here, and what it brings is thrown away'],
    ['unit/deploy/runstore', 'throws away what a stale owner brings'],
  ],
  '16 crons across DST, leap days, missed ticks, two schedulers': [
    ['hostile/api-crons', 'fire once a day across both changes of the clocks'],
    ['hostile/api-crons', 'fire on the leap day alone'],
    ['hostile/api-crons', 'missed for a year come once'],
    ['hostile/api-crons', 'are shared by two schedulers without one tick lost or doubled'],
    ['hostile/api-crons', 'of which no run can be made stop alone'],
  ],
  '17 Last-Event-ID, gone, slow and half-open readers, a thousand joiners': [
    ['hostile/api-streams', 'Last-Event-ID: replay after any event'],
    ['hostile/api-streams', 'two hundred streams at once: those who read get everything in order'],
    ['hostile/api-streams', 'half-open: a connection that carries nothing any more'],
    ['hostile/api-streams', 'half-open: one that takes nothing any more'],
    ['hostile/api-streams', 'a thousand join one run'],
    ['flow/deploy-stream', 'fifty readers that vanish leave nothing behind'],
  ],
  '18 patterns and schedules of clients': [
    ['hostile/api-crons', 'no schedule holds up the server that is asked for it'],
  ],
  '19 checkpoints from the database': [
    ['hostile/api-checkpoints', 'are data: no constructor runs, no secret is read'],
    ['hostile/api-checkpoints', 'that were damaged cost their own thread'],
    ['unit/deploy/saver', 'treat what looks like code in the database as data'],
  ],
  '18, 20 fuzzing': [
    ['fuzz/seeds', 'holds for what was found wrong once'],
    ['fuzz/engine', 'led by what it reaches it finds four bytes in a row'],
    ['fault/arbitrary-bytes', 'arbitrary requests, whole, damaged, split, pipelined or broken off'],
  ],
};

for (const [name, tests] of Object.entries(CASES)) {
  test(`case ${name}`, () => {
    for (const [file, words] of tests) {
      const source = readFileSync(new URL(`../${file}.test.ts`, import.meta.url), 'utf8');
      assert.ok(source.includes(words), `${file}.test.ts has no test with "${words}"`);
    }
  });
}
