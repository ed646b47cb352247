/** Webhooks that are aimed at us, and what they tell others: group 13 of the cases (cases.test.ts). */
import assert from 'node:assert/strict';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import { signingKey } from '../../src/deploy/webhooks/sign.ts';
import { EXAMPLES, specs } from '../deploy-server.ts';
import { startReceiver, type ReceivedHook, type WebhookReceiver } from '../webhook-receiver.ts';
import { startApi, until, type ApiServer } from './apiserver.ts';

const RUN = { assistant_id: 'echo', input: { messages: [] } };

describe('webhooks into places of ours', () => {
  let server: ApiServer;
  before(async () => {
    server = await startApi({ graphs: specs(EXAMPLES, 'echo') });
  });
  after(() => server.close());

  const urls = [
    ...['http://127.0.0.1/', 'http://127.9.9.9:8080/', 'http://[::1]/', 'http://169.254.169.254/latest/meta-data/'],
    ...[
      'http://[::ffff:127.0.0.1]/',
      'http://[::ffff:a9fe:a9fe]/',
      'http://2130706433/',
      'http://0177.0.0.1/',
      'http://0x7f.1/',
    ],
    ...[
      'http://localhost/',
      'http://127.0.0.1.:80/',
      'http://user:pass@127.0.0.1/',
      'http://example.com:22/',
      '/runs/wait',
    ],
    ...[
      '//127.0.0.1/',
      'http:127.0.0.1',
      'http://\t127.0.0.1/',
      'http://127.0.0.1/\r\nx: y',
      'http://①②⑦.0.0.1/',
      'ftp://example.com/',
    ],
  ];

  test('are refused with their reason by every route that takes one, in every spelling, counted, and nothing is made', async () => {
    const threadId = await server.thread();
    const { json } = await server.ask('POST', '/runs/crons', { ...RUN, schedule: '* * * * *', enabled: false });
    const { cron_id: cronId } = json as { cron_id: string };
    let count = 0;
    for (const webhook of urls) {
      const run = { ...RUN, webhook };
      const cron = { ...run, schedule: '* * * * *' };
      for (const [method, path, body] of [
        ['POST', '/runs', run],
        ['POST', '/runs/batch', [RUN, run]],
        ['POST', '/runs/wait', run],
        ['POST', '/runs/stream', run],
        ['POST', '/runs/crons', cron],
        ['PATCH', `/runs/crons/${cronId}`, { webhook }],
        ['POST', `/threads/${threadId}/runs`, run],
        ['POST', `/thread/${threadId}/runs/wait`, run],
        ['POST', `/threads/${threadId}/runs/stream`, run],
        ['POST', `/threads/${threadId}/runs/crons`, cron],
      ] as const) {
        const answer = await server.ask(method, path, body);
        assert.equal(answer.status, 422, `${path} ${webhook}: ${answer.text}`);
        assert.match(answer.detail, /^webhook: \w.{10,}/);
        count++;
      }
    }
    assert.equal(server.counted('webhooks_refused'), count);
    assert.equal((await server.ask('GET', `/threads/${threadId}/runs`)).text, '[]');
    assert.equal((await server.ask('POST', '/runs/crons/count', {})).text, '1');
  });
});

describe('webhooks and their secrets', () => {
  const TOKEN = 'token-of-the-receiver';
  const SECRET = `whsec_${Buffer.from('a-signing-secret-of-the-operator').toString('base64')}`;
  const HEADER = 'Bearer header-of-the-operator';
  const key = signingKey(SECRET);
  let server: ApiServer;
  let receiver: WebhookReceiver;

  before(async () => {
    receiver = await startReceiver();
    assert.ok(key !== null);
    server = await startApi({
      graphs: specs(EXAMPLES, 'echo'),
      settings: {
        access: { apiKeys: ['key-of-the-client'], auth: 'keys', trustedOrigins: () => false },
        webhooks: { allowPrivate: true, keys: [key], headers: { authorization: HEADER }, maxAttempts: 3, backoffMs: 1 },
      },
    });
  });
  after(async () => {
    await server.close();
    await receiver.close();
  });
  afterEach(() => {
    for (const secret of [TOKEN, SECRET.slice(6), HEADER, 'header-of-the-operator', 'key-of-the-client', 'wrong-key']) {
      assert.ok(!server.logged().includes(secret), `${secret} in ${server.logged()}`);
    }
  });

  const ask = (path: string, body: object): ReturnType<ApiServer['ask']> =>
    server.ask('POST', path, body, { 'x-api-key': 'key-of-the-client' });

  /** As the standard has a receiver check it: within five minutes, and of this very body. */
  const isGenuine = ({ headers, body }: Pick<ReceivedHook, 'headers' | 'body'>, nowMs: number): boolean => {
    const [id, timestamp] = [String(headers['webhook-id']), String(headers['webhook-timestamp'])];
    if (Math.abs(nowMs / 1000 - Number(timestamp)) > 300) return false;
    const expected = createHmac('sha256', key?.bytes ?? '')
      .update(`${id}.${timestamp}.${body}`)
      .digest();
    return String(headers['webhook-signature'])
      .split(' ')
      .some((signature) => timingSafeEqual(Buffer.from(signature.replace(/^v1,/, ''), 'base64'), expected));
  };

  test('stand in no log line, whether the receiver takes it, refuses it, or breaks off', async () => {
    receiver.script(500, (response) => response.destroy(), 410);
    const webhook = `${receiver.url}/hook?token=${TOKEN}`;
    await ask('/runs/wait', { ...RUN, webhook });
    await until(() => server.counted('webhooks_failed') === 1, 'it is given up');
    await ask('/runs/wait', { ...RUN, webhook: `http://nobody.invalid/?token=${TOKEN}` });
    await until(() => server.counted('webhooks_failed') === 2, 'nobody answers there');
    await ask('/runs/wait', { ...RUN, webhook: `http://u:${TOKEN}@example.com/` });
    await server.ask('POST', '/runs/wait', { ...RUN, webhook }, { 'x-api-key': 'wrong-key' });
    assert.match(server.logged(), /webhook not delivered/);
  });

  test('prove each attempt: signed anew with its own time under one id; what was changed or kept for later is found out', async () => {
    const before = receiver.received.length;
    receiver.script(503, 503);
    await ask('/runs/wait', { ...RUN, webhook: `${receiver.url}/hook` });
    await receiver.count(before + 3);
    const calls = receiver.received.slice(before);
    assert.equal(
      new Set(calls.map(({ headers }) => headers['webhook-id'])).size,
      1,
      'a receiver can tell that it had it',
    );
    const nowMs = Date.now();
    for (const call of calls) {
      assert.ok(isGenuine(call, nowMs));
      assert.ok(!isGenuine({ ...call, body: call.body.replace('success', 'error') }, nowMs), 'another body');
      assert.ok(!isGenuine({ ...call, headers: { ...call.headers, 'webhook-id': 'other' } }, nowMs), 'another id');
      const later = String(Number(call.headers['webhook-timestamp']) + 1);
      assert.ok(
        !isGenuine({ ...call, headers: { ...call.headers, 'webhook-timestamp': later } }, nowMs),
        'another time',
      );
      assert.ok(!isGenuine(call, nowMs + 3_600_000), 'replayed an hour later');
    }
  });
});
