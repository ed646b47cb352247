/** What the deployment API is told at construction, and what it does where it is told nothing. */
import type { Counters } from '../core/counters.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { DescribedOperation } from '../core/operation.ts';
import { MiB } from '../core/units.ts';
import type { AccessSettings } from './access.ts';
import type { DeploymentConfig, RouteGroup } from './config.ts';
import { createCors, defaultCors, type CorsSettings } from './cors.ts';
import type { GraphSpec, TraceTarget } from './graph/protocol.ts';
import type { HeaderRules } from './runrequests.ts';
import type { StoreLocation } from './store/location.ts';
import type { WebhookPolicySettings } from './webhooks/policy.ts';
import type { SigningKey } from './webhooks/sign.ts';

export interface DeploymentSettings {
  graphs: readonly GraphSpec[];
  /** Folder of the configuration file; the project's packages are found from here. */
  folder: string;
  /** What graph workers see as their environment. */
  environment: Record<string, string | undefined>;
  location: StoreLocation;
  access: AccessSettings;
  cors: CorsSettings;
  mountPrefix: string;
  /** Groups of routes that the configuration file leaves out. */
  disabled?: readonly RouteGroup[];
  headers?: HeaderRules;
  webhooks?: Partial<WebhookSettings>;
  /** Of new threads that ask for none. */
  threadTtl?: DeploymentConfig['threadTtl'];
  storeTtl?: DeploymentConfig['storeTtl'];
  sweep?: DeploymentConfig['sweep'];
  version?: string;
  /** What this process serves besides, for the description of the API. */
  otherOperations?: readonly DescribedOperation[];
  limits?: Partial<DeploymentLimits>;
  /** Where graph runs are traced to; asked when the workers start, so that the port may be known only then. */
  traceTarget?: () => TraceTarget | null;
  log: Log;
  counters?: Counters;
  clock?: Clock;
}

export interface WebhookSettings extends WebhookPolicySettings {
  headers: Readonly<Record<string, string>>;
  keys: readonly SigningKey[];
  maxAttempts: number;
  /** Before the first retry; doubles with each. */
  backoffMs: number;
  /** What one attempt may take. */
  attemptMs?: number;
}

export const DEFAULT_WEBHOOKS: WebhookSettings = {
  disabled: false,
  allowPrivate: false,
  requireHttps: false,
  allowedDomains: [],
  allowedPorts: [],
  maxUrlLength: 65_536,
  headers: {},
  keys: [],
  maxAttempts: 10,
  backoffMs: 5_000,
};

export interface DeploymentLimits {
  graphThreadCount: number;
  runsPerThread: number;
  maxHeapMb: number;
  stallTimeoutMs: number;
  abortGraceMs: number;
  loadTimeoutMs: number;
  callTimeoutMs: number;
  runTimeoutMs: number;
  maxAttempts: number;
  leaseMs: number;
  replayTtlMs: number;
  heartbeatMs: number;
  readerBufferBytes: number;
}

export const DEFAULT_LIMITS: DeploymentLimits = {
  graphThreadCount: 1,
  runsPerThread: 10,
  maxHeapMb: 1024,
  stallTimeoutMs: 60_000,
  abortGraceMs: 5_000,
  loadTimeoutMs: 120_000,
  callTimeoutMs: 60_000,
  runTimeoutMs: 3_600_000,
  maxAttempts: 3,
  leaseMs: 60_000,
  replayTtlMs: 120_000,
  heartbeatMs: 5_000,
  readerBufferBytes: 4 * MiB,
};

/** What the operator decides, beside the configuration file. */
export interface OperatorSettings {
  /** Null: there is no configuration file, and thus no graph. */
  config: DeploymentConfig | null;
  /** The process's own, for graph workers where there is no configuration file. */
  environment: Record<string, string | undefined>;
  location: StoreLocation;
  apiKeys: readonly string[];
  /** `none`: open to everyone, knowingly. */
  auth: 'keys' | 'none';
  webhooks: Pick<WebhookSettings, 'allowPrivate' | 'keys'> &
    Partial<Pick<WebhookSettings, 'maxAttempts' | 'backoffMs'>>;
  limits?: Partial<DeploymentLimits>;
  traceTarget?: () => TraceTarget | null;
  version: string;
  otherOperations: readonly DescribedOperation[];
  log: Log;
  counters: Counters;
}

export function deploymentSettings(operator: OperatorSettings): DeploymentSettings {
  const { config } = operator;
  const cors = config?.cors ?? defaultCors;
  const origins = createCors(cors);
  const hasOwnOrigins = config?.hasOwnOrigins === true;
  return {
    graphs: config?.graphs ?? [],
    folder: config?.folder ?? '.',
    environment: config?.environment ?? operator.environment,
    location: operator.location,
    access: {
      apiKeys: operator.apiKeys,
      auth: operator.auth,
      trustedOrigins: (origin) => hasOwnOrigins && origins.allows(origin),
    },
    cors,
    mountPrefix: config?.mountPrefix ?? '',
    ...(config === null
      ? {}
      : {
          disabled: config.disabled,
          headers: config.headers,
          threadTtl: config.threadTtl,
          storeTtl: config.storeTtl,
          sweep: config.sweep,
        }),
    webhooks: { ...config?.webhooks, disabled: config?.disableWebhooks ?? false, ...operator.webhooks },
    version: operator.version,
    otherOperations: operator.otherOperations,
    limits: operator.limits ?? {},
    ...(operator.traceTarget === undefined ? {} : { traceTarget: operator.traceTarget }),
    log: operator.log,
    counters: operator.counters,
  };
}
