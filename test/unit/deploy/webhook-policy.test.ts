import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { uncounted } from '../../../src/core/counters.ts';
import { createAddressCheck } from '../../../src/deploy/webhooks/address.ts';
import { createWebhookAdmission } from '../../../src/deploy/webhooks/admission.ts';
import { createWebhookPolicy } from '../../../src/deploy/webhooks/policy.ts';
import type { Resolver, WebhookPolicySettings } from '../../../src/deploy/webhooks/policy.ts';

const OPEN: WebhookPolicySettings = {
  disabled: false,
  allowPrivate: false,
  requireHttps: false,
  allowedDomains: [],
  allowedPorts: [],
  maxUrlLength: 2000,
};
/** What the world's name servers say in these tests. */
const ZONE: Readonly<Record<string, string[]>> = {
  'public.example': ['93.184.215.14'],
  'dual.example': ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
  'inner.example': ['10.1.2.3'],
  'half.example': ['93.184.215.14', '127.0.0.1'],
  'metadata.example': ['169.254.169.254'],
  'mapped.example': ['::ffff:10.0.0.1'],
  localhost: ['127.0.0.1', '::1'],
};
const resolver: Resolver = {
  resolve: (hostname) => {
    const addresses = ZONE[hostname];
    if (addresses === undefined) return Promise.reject(new Error('ENOTFOUND'));
    return Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));
  },
};
const admit = (settings: Partial<WebhookPolicySettings>, url: string | null) =>
  createWebhookAdmission(
    createWebhookPolicy({ ...OPEN, ...settings }, createAddressCheck(), resolver),
    { nowMs: () => 0 },
    uncounted,
  )(url);

describe('webhook addresses', () => {
  for (const url of [
    'http://127.0.0.1/',
    'http://127.8.9.10:8080/',
    'http://0.0.0.0/',
    'http://0/',
    'http://2130706433/', // 127.0.0.1 as one number
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://10.0.0.1/',
    'http://172.16.0.1/',
    'http://172.31.255.255/',
    'http://192.168.1.1/',
    'http://100.64.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://192.0.0.192/',
    'http://198.18.0.1/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://[::1]/',
    'http://[::]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://[::127.0.0.1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[2001::1]/',
    'http://[fe80::1]/',
    'http://[fc00::1]/',
    'http://[fd12:3456::1]/',
    'http://[ff02::1]/',
    'http://[2001:db8::1]/',
    'http://localhost/',
    'http://LOCALHOST./',
    'http://inner.example/',
    'http://half.example/',
    'http://metadata.example/',
    'http://mapped.example/',
  ]) {
    it(`refuse ${url}`, async () => {
      const verdict = await admit({}, url);
      assert.equal(verdict.kind, 'refused');
      assert.match((verdict as { reason: string }).reason, /WEBHOOK_ALLOW_PRIVATE/);
      assert.equal((await admit({ allowPrivate: true }, url)).kind, 'accepted');
    });
  }

  for (const url of ['https://public.example/hook?token=x', 'http://dual.example:8080/', 'http://93.184.215.14/']) {
    it(`accept ${url}`, async () => {
      assert.deepEqual(await admit({}, url), { kind: 'accepted', url });
    });
  }

  for (const url of [
    'ftp://public.example/',
    'file:///etc/passwd',
    'gopher://public.example/',
    'javascript:alert(1)',
    'http://user@public.example/',
    'http://user:secret@public.example/',
    'http://public.example:22/',
    'http://public.example:25/',
    'http://public.example:6379x/',
    '/relative/path',
    '//public.example/',
    'public.example',
    '',
    'http://',
    'http://pub lic.example/',
    `http://public.example/${'a'.repeat(3000)}`,
  ]) {
    it(`refuse ${JSON.stringify(url.slice(0, 60))} whatever the network`, async () => {
      assert.equal((await admit({ allowPrivate: true }, url)).kind, 'refused');
    });
  }

  it('are accepted when a name cannot be resolved yet: the attempt will tell', async () => {
    assert.equal((await admit({}, 'https://tomorrow.example/')).kind, 'accepted');
  });

  it('follow the policy of the configuration file', async () => {
    assert.equal((await admit({ requireHttps: true }, 'http://public.example/')).kind, 'refused');
    const allowedDomains = ['*.example.com', 'hooks.example.org'];
    for (const [host, kind] of [
      ['a.example.com', 'accepted'],
      ['a.b.example.com', 'accepted'],
      ['A.EXAMPLE.COM', 'accepted'],
      ['a.example.com.', 'accepted'],
      ['example.com', 'refused'],
      ['evilexample.com', 'refused'],
      ['hooks.example.org', 'accepted'],
      ['x.hooks.example.org', 'refused'],
      ['a.example.com.evil.example', 'refused'],
    ] as const) {
      assert.equal((await admit({ allowedDomains }, `https://${host}/`)).kind, kind, host);
    }
    assert.equal((await admit({ allowedPorts: [8443] }, 'https://public.example:8443/')).kind, 'accepted');
    assert.equal((await admit({ allowedPorts: [8443] }, 'https://public.example/')).kind, 'refused');
    assert.equal((await admit({ allowedPorts: [443] }, 'https://public.example/')).kind, 'accepted');
  });

  it('are dropped silently when webhooks are switched off', async () => {
    assert.deepEqual(await admit({ disabled: true }, 'http://127.0.0.1/'), { kind: 'accepted', url: null });
    assert.deepEqual(await admit({}, null), { kind: 'accepted', url: null });
  });
});
