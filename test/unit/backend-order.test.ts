import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readRfc3339, readSegmentTime, writePlain, writeRfc3339, writeSegmentTime } from '../../src/backend/moment.ts';
import { checkDottedOrder, type OrderClaim } from '../../src/backend/order.ts';

const ROOT = '0af76519-16cd-43dd-8448-eb211c80319c';
const CHILD = '00000000-0000-0000-b7ad-6b7169203331';
const GRANDCHILD = '00000000-0000-0000-5b4b-33aa02c11f90';
const ROOT_ORDER = `20260822T101530250000Z${ROOT}`;
const CHILD_ORDER = `${ROOT_ORDER}.20260822T101530300000Z${CHILD}`;
const GRANDCHILD_ORDER = `${CHILD_ORDER}.20260822T101530410500Z${GRANDCHILD}`;

function check(claim: Partial<OrderClaim>): string | null {
  return checkDottedOrder({
    dottedOrder: GRANDCHILD_ORDER,
    runId: GRANDCHILD,
    traceId: ROOT,
    parentRunId: CHILD,
    startUs: readRfc3339('2026-08-22T10:15:30.410500Z'),
    toleranceUs: 0,
    ...claim,
  });
}

test('Root, child and grandchild of the example pass.', () => {
  assert.equal(check({}), null);
  assert.equal(check({ dottedOrder: CHILD_ORDER, runId: CHILD, parentRunId: ROOT, startUs: null }), null);
  assert.equal(check({ dottedOrder: ROOT_ORDER, runId: ROOT, parentRunId: null, startUs: null }), null);
});

test('An update that does not name its parent or start passes; a wrong one does not.', () => {
  assert.equal(check({ parentRunId: undefined, startUs: null }), null);
  assert.match(check({ parentRunId: undefined, runId: CHILD }) ?? '', /is not the run's id/);
});

test('The complaint names the run as the hosted backend does.', () => {
  assert.equal(
    check({ dottedOrder: CHILD_ORDER, runId: CHILD, parentRunId: null, startUs: null }),
    "invalid 'dotted_order': dotted_order must contain a single part for root runs " +
      `for run_id:${CHILD} trace_id:${ROOT} dotted_order:${CHILD_ORDER} parent_run_id:<nil>`,
  );
});

const wrong: [title: string, claim: Partial<OrderClaim>, complaint: string][] = [
  [
    'a parent and one segment',
    { dottedOrder: ROOT_ORDER },
    'dotted_order must contain at least two parts for child runs',
  ],
  ['another last id', { runId: CHILD }, `last run id ${GRANDCHILD} in dotted_order is not the run's id`],
  ['another first id', { traceId: CHILD }, `first run id ${ROOT} in dotted_order is not the trace_id`],
  [
    'another id before the last',
    { parentRunId: ROOT },
    `run id ${CHILD} before the last in dotted_order is not the parent_run_id`,
  ],
  [
    'another start time',
    { startUs: readRfc3339('2026-08-22T10:15:30.410501Z') },
    'last timestamp 2026-08-22 10:15:30.410500 in dotted_order is not the start_time 2026-08-22T10:15:30.410501Z',
  ],
  [
    'a child before its parent',
    { dottedOrder: GRANDCHILD_ORDER.replace('101530410500', '101530299999') },
    'dotted_order has timestamp 2026-08-22 10:15:30.299999 earlier than parent timestamp 2026-08-22 10:15:30.300000',
  ],
  [
    'three digits of fraction',
    { dottedOrder: `20251223T041955111Z${ROOT}` },
    "invalid timestamp in dotted_order 20251223T041955111 at index 0: cannot parse '.111' as '.000000'",
  ],
  [
    'nine digits of fraction in the middle',
    { dottedOrder: GRANDCHILD_ORDER.replace('101530300000Z', '101530300000123Z') },
    "invalid timestamp in dotted_order 20260822T101530300000123 at index 1: cannot parse '.300000123' as '.000000'",
  ],
  [
    'a month that is none',
    { dottedOrder: GRANDCHILD_ORDER.replaceAll('202608', '202613') },
    'invalid timestamp in dotted_order 20261322T101530250000 at index 0',
  ],
  [
    'an id that is none',
    { dottedOrder: GRANDCHILD_ORDER.replace('eb211c80319c', 'eb211c80319x') },
    'invalid run id in dotted_order 0af76519-16cd-43dd-8448-eb211c80319x at index 0',
  ],
  ['nothing', { dottedOrder: '' }, 'invalid timestamp in dotted_order  at index 0'],
  ['an empty segment', { dottedOrder: `${GRANDCHILD_ORDER}.` }, 'invalid timestamp in dotted_order  at index 3'],
];
for (const [title, claim, complaint] of wrong) {
  test(`Refused: ${title}.`, () => {
    const problem = check(claim) ?? 'nothing';
    assert.equal(problem.slice("invalid 'dotted_order': ".length, problem.indexOf(' for run_id:')), complaint);
  });
}

test('Children may start with their parent; the tolerance is what it says.', () => {
  assert.equal(check({ dottedOrder: GRANDCHILD_ORDER.replace('101530410500', '101530300000'), startUs: null }), null);
  const startUs = (readRfc3339('2026-08-22T10:15:30.410500Z') ?? 0) + 999;
  assert.equal(check({ startUs, toleranceUs: 999 }), null);
  assert.match(check({ startUs, toleranceUs: 998 }) ?? '', /is not the start_time/);
});

test('Ids are compared whatever their case.', () => {
  assert.equal(check({ dottedOrder: GRANDCHILD_ORDER.replace(CHILD, CHILD.toUpperCase()) }), null);
});

test('Timestamps need a zone, a real date, and nothing else.', () => {
  const at = (text: string): string | null => {
    const us = readRfc3339(text);
    return us === null ? null : writeRfc3339(us);
  };
  assert.equal(at('2026-08-22T10:15:30Z'), '2026-08-22T10:15:30.000000Z');
  assert.equal(at('2026-08-22T10:15:30.25+02:00'), '2026-08-22T08:15:30.250000Z');
  assert.equal(at('2026-08-22T10:15:30.123456789-00:30'), '2026-08-22T10:45:30.123456Z');
  assert.equal(at('2024-02-29T00:00:00Z'), '2024-02-29T00:00:00.000000Z');
  assert.equal(at('1969-12-31T23:59:59.999999Z'), '1969-12-31T23:59:59.999999Z');
  assert.equal(at('2255-06-05T23:47:34.740991Z'), '2255-06-05T23:47:34.740991Z');
  for (const text of [
    '2026-08-22T10:15:30',
    '2026-08-22T10:15:30.250000',
    '2026-08-22 10:15:30Z',
    '2026-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-08-22T24:00:00Z',
    '2026-08-22T10:60:00Z',
    '2026-08-22T10:15:61Z',
    '2026-08-22T10:15:30.Z',
    '2026-08-22T10:15:30Zx',
    '2026-08-22T10:15:30+2:00',
    '2026-08-22T10:15:30+24:00',
    '26-08-22T10:15:30Z',
    '1787393730250',
    '2255-06-05T23:47:34.740992Z',
    '9999-12-31T23:59:59Z',
    '0050-01-01T00:00:00Z',
    '',
  ]) {
    assert.equal(at(text), null, text);
  }
});

test('Any microsecond survives being written and read, in both spellings.', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (us) => {
      assert.equal(readRfc3339(writeRfc3339(us)), us);
      assert.equal(readSegmentTime(writeSegmentTime(us).slice(0, -1)), us);
      assert.equal(writePlain(us).length, 26);
    }),
  );
});
