/**
 * Which URLs a webhook may have. Asked when a run or cron is created, so that its creator hears of it, and again at every attempt,
 * because names change what they resolve to. Pure but for the resolver.
 */
import { isIP } from 'node:net';
import type { AddressCheck } from './address.ts';

export interface WebhookPolicySettings {
  /** Runs execute, their webhooks are dropped silently. */
  disabled: boolean;
  /** Receivers may be on the operator's own network. */
  allowPrivate: boolean;
  requireHttps: boolean;
  /** Exact hosts, or `*.suffix`, which does not match the suffix itself. Empty: any. */
  allowedDomains: readonly string[];
  /** Empty: any but those of other protocols. */
  allowedPorts: readonly number[];
  maxUrlLength: number;
}

export interface Resolver {
  /** All addresses of a name; rejects when there are none. */
  resolve(hostname: string, signal: AbortSignal): Promise<{ address: string; family: number }[]>;
}

export type UrlVerdict = { kind: 'allowed'; url: URL } | { kind: 'refused'; reason: string };
export type TargetVerdict =
  | { kind: 'allowed'; address: string; family: number }
  /** May be right tomorrow. */
  | { kind: 'unresolved'; reason: string }
  | { kind: 'refused'; reason: string };

export interface WebhookPolicy {
  readonly disabled: boolean;
  /** What can be told from the text. */
  checkUrl(text: string): UrlVerdict;
  /** What its host resolves to now: the address to connect to. Every address must be allowed, not just one. */
  checkTarget(url: URL, signal: AbortSignal): Promise<TargetVerdict>;
}

/** Ports that browsers refuse as well (Fetch standard): what listens there speaks something else than HTTP. */
const BAD_PORTS = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

const PRIVATE_HINT = 'not a public address (WEBHOOK_ALLOW_PRIVATE=true allows receivers on your own network)';

export function createWebhookPolicy(
  settings: WebhookPolicySettings,
  isPublic: AddressCheck,
  resolver: Resolver,
): WebhookPolicy {
  const domainAllowed = (hostname: string): boolean =>
    settings.allowedDomains.length === 0 ||
    settings.allowedDomains.some((domain) => {
      const wanted = domain.toLowerCase();
      return wanted.startsWith('*.') ? hostname.endsWith(wanted.slice(1)) : hostname === wanted;
    });

  return {
    disabled: settings.disabled,

    checkUrl: (text) => {
      const refused = (reason: string): UrlVerdict => ({ kind: 'refused', reason });
      if (text.length > settings.maxUrlLength) return refused(`longer than ${settings.maxUrlLength} characters`);
      if (text.startsWith('/')) return refused('relative URLs are not served: there are no custom routes here');
      const url = URL.parse(text);
      if (url === null) return refused('not a URL');
      if (url.protocol !== 'https:' && url.protocol !== 'http:') return refused('only http and https are called');
      if (settings.requireHttps && url.protocol !== 'https:') return refused('must be https');
      if (url.username !== '' || url.password !== '') return refused('must not contain a user name or password');
      const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
      if (settings.allowedPorts.length > 0 ? !settings.allowedPorts.includes(port) : BAD_PORTS.has(port)) {
        return refused(`port ${port} is not allowed`);
      }
      if (!domainAllowed(hostnameOf(url))) return refused('the host is not one of the allowed domains');
      const literal = literalOf(url);
      if (literal !== null && !settings.allowPrivate && !isPublic(literal)) return refused(PRIVATE_HINT);
      return { kind: 'allowed', url };
    },

    checkTarget: async (url, signal) => {
      const literal = literalOf(url);
      let addresses: { address: string; family: number }[];
      try {
        addresses =
          literal === null
            ? await resolver.resolve(hostnameOf(url), signal)
            : [{ address: literal, family: isIP(literal) }];
      } catch {
        return { kind: 'unresolved', reason: 'the host could not be resolved' };
      }
      const [first] = addresses;
      if (first === undefined) return { kind: 'unresolved', reason: 'the host has no address' };
      if (!settings.allowPrivate && !addresses.every(({ address }) => isPublic(address))) {
        return { kind: 'refused', reason: PRIVATE_HINT };
      }
      return { kind: 'allowed', ...first };
    },
  };
}

/** Without the root's full stop, which would let a name past the list of domains. */
function hostnameOf(url: URL): string {
  return url.hostname.toLowerCase().replace(/\.$/, '');
}

/** The address, when the host is one: the URL parser has already turned octal, hexadecimal and short forms into dotted ones. */
function literalOf(url: URL): string | null {
  const bare = hostnameOf(url).replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) === 0 ? null : bare;
}
