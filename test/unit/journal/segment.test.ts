/** Which bodies of a segment are still needed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_SEGMENT_BODIES, Segment } from '../../../src/journal/segment.ts';
import { Segments } from '../../../src/journal/segments.ts';

test('a body is needed until as many records are settled as were made of it, whichever is known first', () => {
  const segment = new Segment(1, 0, 8);
  const [early, late, mixed] = [segment.add(10), segment.add(20), segment.add(30)];
  assert.deepEqual([segment.liveCount, segment.liveBytes, segment.bytes], [3, 60, 68]);
  segment.answered(early, 2);
  segment.settle(early, 1);
  assert.ok(segment.isLive(early));
  segment.settle(early, 1);
  segment.settle(late, 5);
  assert.ok(segment.isLive(late) && segment.isUnanswered(late));
  segment.answered(late, 5);
  segment.settle(mixed, 1);
  segment.answered(mixed, 3);
  segment.settle(mixed, 2);
  assert.deepEqual([segment.liveCount, segment.liveBytes], [0, 0]);
});

test('what comes late for a body that is not needed any more changes nothing', () => {
  const segment = new Segment(1, 0, 8);
  const index = segment.add(10);
  segment.drop(index);
  segment.drop(index);
  segment.settle(index, 4);
  segment.answered(index, 4);
  assert.equal(segment.liveCount, 0);
  segment.settle(77, 1);
  assert.equal(segment.bodyCount, 1);
});

test('started over, everything that is needed is unanswered again, the rest stays settled', () => {
  const segment = new Segment(1, 3, 8);
  const [done, half, open] = [segment.add(1), segment.add(1), segment.add(1)];
  segment.answered(done, 1);
  segment.settle(done, 1);
  segment.answered(half, 2);
  segment.settle(half, 1);
  segment.startOver(4);
  assert.deepEqual(
    [done, half, open].map((index) => segment.isUnanswered(index)),
    [false, true, true],
  );
  assert.equal(segment.sourceOf(half), 4 * 65536 + half + 1);
  segment.answered(half, 2);
  segment.settle(half, 1);
  assert.ok(segment.isLive(half), 'what was settled before does not count');
});

test('decoded once more, a body has another number, under which it begins anew; the others keep theirs', () => {
  const segments = new Segments(1 << 30);
  const segment = segments.openFor(10);
  const [first, second, third] = [0, 1, 2].map(() => segments.add(segment, 1)) as [number, number, number];
  const before = segment.sourceOf(second);
  segment.settle(second, 1); // a part of it
  const id = segments.laterId(segment);
  segment.tryAgain(second, id);
  assert.notEqual(segment.sourceOf(second), before);
  assert.equal(segments.find(segment.sourceOf(second)), segment);
  assert.equal(Segments.indexOf(segment.sourceOf(second)), second);
  assert.equal(segment.sourceOf(first) + 2, segment.sourceOf(third));
  segment.answered(second, 2);
  segment.settle(second, 1);
  assert.ok(segment.isLive(second), 'what was settled before does not count');
  segment.tryAgain(second, segments.laterId(segment));
  assert.equal(segment.sourceOf(second), id * 65536 + second + 1, 'one that is answered is not decoded once more');

  // Ids that nothing has any more are given back, but still tell whose they were.
  segment.settle(second, 1);
  assert.ok(!segment.isLive(second));
  const former = id * 65536 + second + 1;
  segment.tryAgain(third, segments.laterId(segment));
  assert.equal(segments.find(former), undefined);
  assert.equal(segments.findEver(former), segment);
  const last = segment.sourceOf(third);
  segments.startOver(segment);
  assert.notEqual(segment.sourceOf(third), last);
  assert.equal(segments.find(last), undefined);
  segments.remove(segment);
  for (const source of [before, former, last, segment.sourceOf(third)])
    assert.equal(segments.findEver(source), undefined);
});

test('without an id left, asking for one is an error and not a loop without end', () => {
  const segments = new Segments(1000, 16);
  for (let number = 1; number <= 16; number++) segments.adopt(number, 10);
  assert.throws(() => segments.openFor(10), /no id is left/);
  segments.remove(segments.byNumber(7) as Segment);
  assert.equal(segments.openFor(10).bodyCount, 0);
});

test('bodies found on disk leave gaps where others are damaged', () => {
  const segment = new Segment(1, 0, 8);
  assert.ok(segment.find(2, 10));
  assert.ok(!segment.find(2, 10));
  assert.ok(segment.find(2000, 10));
  assert.deepEqual([segment.isLive(0), segment.isLive(2), segment.liveCount], [false, true, 2]);
});

test('numbers lead back to their segment and body, up to the largest, and those started over do not', () => {
  const segments = new Segments(1 << 30);
  segments.adopt(7, 100);
  const first = segments.openFor(10);
  assert.equal(first.number, 8);
  for (let index = 0; index < MAX_SEGMENT_BODIES; index++) {
    assert.equal(segments.openFor(10), first);
    assert.equal(segments.add(first, 10), index);
  }
  const last = first.sourceOf(MAX_SEGMENT_BODIES - 1);
  assert.equal(segments.find(last), first);
  assert.equal(Segments.indexOf(last), MAX_SEGMENT_BODIES - 1);
  assert.notEqual(first.sourceOf(0) >>> 0, 0);
  const second = segments.openFor(10);
  assert.notEqual(second, first);
  assert.ok(first.sealed);
  segments.startOver(first);
  assert.equal(segments.find(last), undefined);
  assert.equal(segments.find(first.sourceOf(5)), first);
  const bytes = segments.bytes;
  segments.remove(first);
  assert.equal(segments.bytes, bytes - first.bytes);
  assert.equal(segments.find(first.sourceOf(5)), undefined);
});

test('a full segment is followed by another; a body larger than a segment has one to itself', () => {
  const segments = new Segments(1000);
  const numbers = [400, 400, 400, 5000, 10].map((bytes) => {
    const segment = segments.openFor(bytes);
    segments.add(segment, bytes);
    return segment.number;
  });
  assert.deepEqual(numbers, [1, 1, 2, 3, 4]);
});
