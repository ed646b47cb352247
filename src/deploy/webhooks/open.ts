/** The webhook parts put together: what may be asked for, and the sender of what was. */
import { createAddressCheck } from './address.ts';
import { createWebhookAdmission } from './admission.ts';
import type { WebhookAdmission } from './admission.ts';
import { attemptWebhook } from './attempt.ts';
import { createWebhookPolicy } from './policy.ts';
import type { Resolver, WebhookPolicySettings } from './policy.ts';
import { systemResolver } from './resolve.ts';
import { createWebhookSender } from './sender.ts';
import type { WebhookSender, WebhookSenderSettings } from './sender.ts';

export interface Webhooks {
  readonly admit: WebhookAdmission;
  readonly sender: WebhookSender;
}

export type WebhooksSettings = WebhookPolicySettings &
  Omit<WebhookSenderSettings, 'attempt' | 'random'> & { resolver?: Resolver; random?: () => number };

export function openWebhooks(settings: WebhooksSettings): Webhooks {
  const policy = createWebhookPolicy(settings, createAddressCheck(), settings.resolver ?? systemResolver);
  return {
    admit: createWebhookAdmission(policy, settings.clock, settings.counters),
    sender: createWebhookSender({
      ...settings,
      attempt: (request) => attemptWebhook(policy, request),
      random: settings.random ?? Math.random,
    }),
  };
}
