import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createBudget } from '../../src/accept/budget.ts';

test('what is taken fits the limit, and giving it back makes room again', () => {
  const budget = createBudget(100);
  assert.equal(budget.take(60), true);
  assert.equal(budget.take(41), false);
  assert.equal(budget.take(40), true);
  budget.give({}, 60);
  assert.equal(budget.usedBytes, 40);
  assert.equal(budget.take(60), true);
});

test('one body at a time may grow past the limit; small ones still find the room that is left', () => {
  const budget = createBudget(100);
  const [long, second] = [{}, {}];
  assert.equal(budget.take(10), true);
  assert.equal(budget.grow(long, 200), true);
  assert.equal(budget.grow(second, 200), false, 'the second would need to go past the limit too');
  assert.equal(budget.take(90), true, 'the excess is not counted against the others');
  assert.equal(budget.take(1), false);
  budget.give(long, 210);
  assert.equal(budget.usedBytes, 90);
  assert.equal(budget.grow(second, 200), true, 'the place is free again');
});

test('after everything was given back nothing is used, whatever the order', () => {
  const step = fc.record({ owner: fc.nat(5), bytes: fc.integer({ min: 1, max: 80 }), give: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const budget = createBudget(100);
      const owners = Array.from({ length: 6 }, () => ({ heldBytes: 0 }));
      const giveBack = (owner: { heldBytes: number }): void => {
        if (owner.heldBytes > 0) budget.give(owner, owner.heldBytes);
        owner.heldBytes = 0;
      };
      for (const { owner: index, bytes, give } of steps) {
        const owner = owners[index];
        if (owner === undefined) continue;
        if (give) giveBack(owner);
        else if (owner.heldBytes === 0 ? budget.take(bytes) : budget.grow(owner, bytes)) owner.heldBytes += bytes;
        const heldBytes = owners.map((each) => each.heldBytes);
        assert.equal(
          budget.usedBytes,
          heldBytes.reduce((sum, each) => sum + each, 0),
        );
        const withoutLongest = budget.usedBytes - Math.max(...heldBytes);
        assert.ok(withoutLongest <= 100, `${withoutLongest} bytes besides the one that may be over`);
      }
      owners.forEach(giveBack);
      assert.equal(budget.usedBytes, 0);
      assert.equal(budget.take(100), true);
    }),
  );
});
