import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createAccess, createLoopbackCheck } from '../../../src/deploy/access.ts';
import type { AccessSettings } from '../../../src/deploy/access.ts';

function check(
  settings: Partial<AccessSettings>,
  headers: Readonly<Record<string, string>> = {},
  remoteAddress = '127.0.0.1',
): string {
  const access = createAccess({ apiKeys: [], auth: 'keys', trustedOrigins: () => false, ...settings });
  return access.check({ header: (name) => headers[name] ?? '', remoteAddress })?.kind ?? 'served';
}

describe('access with API keys', () => {
  const keys = { apiKeys: ['first-key', 'second-key'] };

  it('wants one of them, on either header, from everywhere', () => {
    assert.equal(check(keys), 'unauthenticated');
    assert.equal(check(keys, { 'x-api-key': 'wrong' }), 'unauthenticated');
    assert.equal(check(keys, { 'x-api-key': 'first-ke' }), 'unauthenticated');
    assert.equal(check(keys, { authorization: 'Bearer' }), 'unauthenticated');
    assert.equal(check(keys, { authorization: 'Basic second-key' }), 'unauthenticated');
    assert.equal(check(keys, { 'x-api-key': 'second-key' }, '203.0.113.9'), 'served');
    assert.equal(check(keys, { authorization: 'bearer  first-key' }, '203.0.113.9'), 'served');
  });

  it('takes the right one on one header beside another service’s on the other, in either order', () => {
    assert.equal(check(keys, { 'x-api-key': 'lsv2_other', authorization: 'Bearer first-key' }), 'served');
    assert.equal(check(keys, { 'x-api-key': 'second-key', authorization: 'Bearer other' }), 'served');
    assert.equal(check(keys, { 'x-api-key': 'lsv2_other', authorization: 'Bearer other' }), 'unauthenticated');
  });

  it('serves forwarded requests and foreign pages that have one', () => {
    const headers = { 'x-api-key': 'first-key', 'x-forwarded-for': '203.0.113.9', origin: 'https://app.example.com' };
    assert.equal(check(keys, headers), 'served');
  });
});

describe('access without API keys', () => {
  it('serves this machine only', () => {
    assert.equal(check({}), 'served');
    assert.equal(check({}, {}, '::1'), 'served');
    assert.equal(check({}, {}, '192.168.1.2'), 'forbidden');
    assert.equal(check({}, {}, '203.0.113.9'), 'forbidden');
  });

  for (const name of ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via', 'cf-connecting-ip']) {
    it(`refuses what a proxy passed on (${name})`, () => {
      assert.equal(check({}, { [name]: '127.0.0.1' }), 'forbidden');
    });
  }

  it('refuses a name that was made to point here', () => {
    assert.equal(check({}, { host: 'evil.example:2024' }), 'forbidden');
    assert.equal(check({}, { host: 'localhost.evil.example' }), 'forbidden');
    for (const host of ['localhost:2024', 'app.localhost', '127.0.0.1:2024', '[::1]:2024']) {
      assert.equal(check({}, { host }), 'served', host);
    }
  });

  it('refuses the scripts of strangers in a browser here, unless the operator named their origin', () => {
    assert.equal(check({}, { origin: 'https://evil.example' }), 'forbidden');
    assert.equal(check({}, { origin: 'null' }), 'forbidden');
    assert.equal(check({}, { origin: 'http://localhost:3000' }), 'served');
    const trustedOrigins = (origin: string) => origin === 'https://studio.example';
    assert.equal(check({ trustedOrigins }, { origin: 'https://studio.example' }), 'served');
  });

  it('names the variable that opens the API', () => {
    const refusal = createAccess({ apiKeys: [], auth: 'keys', trustedOrigins: () => false }).check({
      header: () => '',
      remoteAddress: '203.0.113.9',
    });
    assert.match(refusal?.detail ?? '', /DEPLOYMENT_API_KEYS/);
  });

  it('serves everyone when told so', () => {
    assert.equal(check({ auth: 'none' }, { 'x-forwarded-for': '1.2.3.4' }, '203.0.113.9'), 'served');
  });
});

describe('loopback addresses', () => {
  for (const [address, expected] of [
    ['127.0.0.1', true],
    ['127.255.255.254', true],
    ['::1', true],
    ['0000:0000:0000:0000:0000:0000:0000:0001', true],
    ['::ffff:127.0.0.1', true],
    ['0000:0000:0000:0000:0000:ffff:7f00:0001', true],
    ['::ffff:10.0.0.1', false],
    ['128.0.0.1', false],
    ['0.0.0.0', false],
    ['::', false],
    ['', false],
    ['localhost', false],
  ] as const) {
    it(`${address || 'nothing'} is ${expected ? 'one' : 'none'}`, () =>
      assert.equal(createLoopbackCheck()(address), expected));
  }
});
