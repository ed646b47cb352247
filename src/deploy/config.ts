/**
 * Reads a project's `langgraph.json`. Comes in: the file's path and the environment. Goes out: a {@link DeploymentConfig}, or
 * everything that is wrong with it at once. What would be unsafe to leave out (authentication, encryption) is refused, what is merely
 * not there is warned about.
 */
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { z } from 'zod';
import { MINUTE_MS } from '../core/units.ts';
import { ttlMinutes, ttlMsOf } from './bounds.ts';
import { defaultCors } from './cors.ts';
import type { CorsSettings } from './cors.ts';
import type { GraphSpec } from './graph/protocol.ts';
import { present } from './present.ts';
import { DEFAULT_HEADER_RULES } from './runrequests.ts';
import type { HeaderRules } from './runrequests.ts';

export interface DeploymentConfig {
  graphs: readonly GraphSpec[];
  folder: string;
  /** The file's `env`, under what the process has already. */
  environment: Record<string, string | undefined>;
  disabled: readonly RouteGroup[];
  disableWebhooks: boolean;
  mountPrefix: string;
  cors: CorsSettings;
  /** Origins were named in the file, and not just left at the default. */
  hasOwnOrigins: boolean;
  headers: HeaderRules;
  webhooks: WebhookConfig;
  storeTtl: { defaultMs: number | null; refreshOnRead: boolean };
  threadTtl: { strategy: 'delete' | 'keep_latest'; ttlMs: number } | null;
  sweep: { intervalMs: number; threadCount: number };
}

export type RouteGroup = 'assistants' | 'threads' | 'runs' | 'store' | 'meta';

export interface WebhookConfig {
  headers: Readonly<Record<string, string>>;
  requireHttps: boolean;
  allowedDomains: readonly string[];
  allowedPorts: readonly number[];
  maxUrlLength: number;
}

export type ConfigReading =
  { kind: 'read'; config: DeploymentConfig; warnings: string[] } | { kind: 'invalid'; issues: string[] };

const DEFAULT_WEBHOOK_PREFIX = 'LG_WEBHOOK_';
const MAX_URL_LENGTH = 65_536;
const DEFAULT_SWEEP_MS = 5 * MINUTE_MS;
const DEFAULT_SWEEP_COUNT = 1000;

const headerRules = z.object({
  includes: z.array(z.string()).nullish(),
  excludes: z.array(z.string()).nullish(),
  // Older documentation.
  include: z.array(z.string()).nullish(),
  exclude: z.array(z.string()).nullish(),
});
const file = z.looseObject({
  graphs: z.record(
    z.string().min(1),
    z.union(
      [z.string().min(1), z.looseObject({ path: z.string().min(1), description: z.string().nullish() })],
      'expected "./file.ts:export", or an object with that as its path',
    ),
  ),
  env: z.union([z.string(), z.record(z.string(), z.string())]).nullish(),
  http: z
    .looseObject({
      app: z.string().nullish(),
      disable_assistants: z.boolean().nullish(),
      disable_threads: z.boolean().nullish(),
      disable_runs: z.boolean().nullish(),
      disable_store: z.boolean().nullish(),
      disable_meta: z.boolean().nullish(),
      disable_webhooks: z.boolean().nullish(),
      cors: z
        .looseObject({
          allow_origins: z.array(z.string()).nullish(),
          allow_origin_regex: z.string().nullish(),
          allow_methods: z.array(z.string()).nullish(),
          allow_headers: z.array(z.string()).nullish(),
          allow_credentials: z.boolean().nullish(),
          expose_headers: z.array(z.string()).nullish(),
          max_age: z.number().min(0).nullish(),
        })
        .nullish(),
      configurable_headers: headerRules.nullish(),
      'configurable-headers': headerRules.nullish(),
      mount_prefix: z.string().nullish(),
    })
    .nullish(),
  webhooks: z
    .looseObject({
      env_prefix: z.string().nullish(),
      headers: z.record(z.string(), z.string()).nullish(),
      url: z
        .looseObject({
          require_https: z.boolean().nullish(),
          allowed_domains: z.array(z.string()).nullish(),
          allowed_ports: z.array(z.int().min(1).max(65_535)).nullish(),
          max_url_length: z.int().min(1).nullish(),
          disable_loopback: z.boolean().nullish(),
        })
        .nullish(),
    })
    .nullish(),
  store: z
    .looseObject({
      index: z.unknown().optional(),
      ttl: z
        .looseObject({
          default_ttl: ttlMinutes.nullish(),
          refresh_on_read: z.boolean().nullish(),
          sweep_interval_minutes: z.number().positive().nullish(),
        })
        .nullish(),
    })
    .nullish(),
  checkpointer: z
    .looseObject({
      path: z.string().nullish(),
      ttl: z
        .looseObject({
          strategy: z.enum(['delete', 'keep_latest']).nullish(),
          default_ttl: ttlMinutes.nullish(),
          sweep_interval_minutes: z.number().positive().nullish(),
          sweep_limit: z.int().min(1).nullish(),
        })
        .nullish(),
    })
    .nullish(),
  auth: z.unknown().optional(),
  encryption: z.unknown().optional(),
});
type File = z.output<typeof file>;

export async function readDeploymentConfig(
  path: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ConfigReading> {
  const folder = dirname(resolve(path));
  let text: string;
  try {
    text = (await readFile(path, 'utf8')).replace(/^\uFEFF/, '');
  } catch (error) {
    return {
      kind: 'invalid',
      issues: [`${path}: cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`],
    };
  }
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { kind: 'invalid', issues: [`${path}: ${(error as Error).message}`] };
  }
  const parsed = file.safeParse(document);
  if (!parsed.success) {
    return {
      kind: 'invalid',
      issues: parsed.error.issues.map((issue) => `${path}: ${issue.path.join('.') || 'file'}: ${issue.message}`),
    };
  }
  const reader = new Reader(path, folder, parsed.data, environment);
  return reader.read();
}

/** Collects what is wrong while the parts are put together. */
class Reader {
  readonly #path: string;
  readonly #folder: string;
  readonly #file: File;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #issues: string[] = [];
  readonly #warnings: string[] = [];

  constructor(path: string, folder: string, content: File, environment: Readonly<Record<string, string | undefined>>) {
    this.#path = path;
    this.#folder = folder;
    this.#file = content;
    this.#environment = environment;
  }

  async read(): Promise<ConfigReading> {
    const { http, store, checkpointer } = this.#file;
    const environment = await this.#fullEnvironment();
    const graphs = Object.entries(this.#file.graphs).map(([graphId, entry]) => this.#graph(graphId, entry));
    this.#checkUnsupported();
    const config: DeploymentConfig = {
      graphs,
      folder: this.#folder,
      environment,
      disabled: this.#disabled(),
      disableWebhooks: http?.disable_webhooks ?? false,
      mountPrefix: http?.mount_prefix ?? environment['MOUNT_PREFIX'] ?? '',
      cors: this.#cors(environment),
      hasOwnOrigins:
        Boolean(http?.cors?.allow_origins ?? http?.cors?.allow_origin_regex) ||
        environment['CORS_ALLOW_ORIGINS'] !== undefined,
      headers: this.#headerRules(),
      webhooks: this.#webhooks(environment),
      storeTtl: {
        defaultMs: store?.ttl?.default_ttl ? ttlMsOf(store.ttl.default_ttl) : null,
        refreshOnRead: store?.ttl?.refresh_on_read ?? true,
      },
      threadTtl: checkpointer?.ttl?.default_ttl
        ? { strategy: checkpointer.ttl.strategy ?? 'delete', ttlMs: ttlMsOf(checkpointer.ttl.default_ttl) }
        : null,
      sweep: {
        intervalMs: this.#sweepIntervalMs(),
        threadCount: checkpointer?.ttl?.sweep_limit ?? DEFAULT_SWEEP_COUNT,
      },
    };
    if (this.#issues.length > 0) return { kind: 'invalid', issues: this.#issues };
    return { kind: 'read', config, warnings: this.#warnings };
  }

  #issue(text: string): void {
    this.#issues.push(`${this.#path}: ${text}`);
  }

  #warn(text: string): void {
    this.#warnings.push(`${this.#path}: ${text}`);
  }

  /** What the process has wins over the file. */
  async #fullEnvironment(): Promise<Record<string, string | undefined>> {
    const { env } = this.#file;
    if (env === null || env === undefined) return { ...this.#environment };
    if (typeof env !== 'string') return { ...env, ...present(this.#environment) };
    try {
      return { ...parseEnv(await readFile(this.#inFolder(env), 'utf8')), ...present(this.#environment) };
    } catch {
      this.#warn(`env: ${env} cannot be read; starting without it`);
      return { ...this.#environment };
    }
  }

  #graph(graphId: string, entry: File['graphs'][string]): GraphSpec {
    const target = typeof entry === 'string' ? entry : entry.path;
    // The last colon, and not the one behind a drive's letter.
    const match = /^(.+):([A-Za-z_$][\w$]*)$/.exec(target);
    const [path = target, exportName = ''] = match === null ? [target] : match.slice(1);
    if (/\.py$/i.test(path)) this.#issue(`graphs.${graphId}: Python graphs cannot be run here`);
    const description = typeof entry === 'string' ? null : entry.description;
    return { graphId, file: this.#inFolder(path), exportName, ...(description ? { description } : {}) };
  }

  #inFolder(path: string): string {
    return isAbsolute(path) ? path : join(this.#folder, path);
  }

  #disabled(): RouteGroup[] {
    const http = this.#file.http ?? {};
    const groups: RouteGroup[] = ['assistants', 'threads', 'runs', 'store', 'meta'];
    return groups.filter((group) => http[`disable_${group}`] === true);
  }

  #cors(environment: Readonly<Record<string, string | undefined>>): CorsSettings {
    const cors = this.#file.http?.cors ?? {};
    const fromEnvironment = environment['CORS_ALLOW_ORIGINS']?.split(',').map((origin) => origin.trim());
    const pattern = cors.allow_origin_regex ?? null;
    if (pattern !== null && !isPattern(pattern)) this.#issue('http.cors.allow_origin_regex: not a regular expression');
    return {
      ...defaultCors,
      // A pattern alone narrows; it does not add to everyone.
      ...(pattern === null ? {} : { allowOrigins: [] }),
      ...present({
        allowOrigins: cors.allow_origins ?? fromEnvironment,
        allowMethods: cors.allow_methods,
        allowHeaders: cors.allow_headers,
        allowCredentials: cors.allow_credentials,
        exposeHeaders: cors.expose_headers,
        maxAgeSec: cors.max_age,
      }),
      allowOriginRegex: pattern,
    };
  }

  #headerRules(): HeaderRules {
    const rules = this.#file.http?.configurable_headers ?? this.#file.http?.['configurable-headers'];
    if (rules === null || rules === undefined) return DEFAULT_HEADER_RULES;
    return {
      includes: rules.includes ?? rules.include ?? DEFAULT_HEADER_RULES.includes,
      excludes: rules.excludes ?? rules.exclude ?? DEFAULT_HEADER_RULES.excludes,
    };
  }

  #webhooks(environment: Readonly<Record<string, string | undefined>>): WebhookConfig {
    const { headers = {}, env_prefix: prefix, url } = this.#file.webhooks ?? {};
    const entries = Object.entries(headers ?? {}).map(([name, value]) => {
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) this.#issue(`webhooks.headers: "${name}" is not a header name`);
      return [name.toLowerCase(), this.#resolved(name, value, prefix ?? DEFAULT_WEBHOOK_PREFIX, environment)] as const;
    });
    return {
      headers: Object.fromEntries(entries),
      requireHttps: url?.require_https ?? false,
      allowedDomains: url?.allowed_domains ?? [],
      allowedPorts: url?.allowed_ports ?? [],
      maxUrlLength: url?.max_url_length ?? MAX_URL_LENGTH,
    };
  }

  /** `${{ env.NAME }}` in a header's value; only names with the prefix may be told to receivers. */
  #resolved(
    name: string,
    value: string,
    prefix: string,
    environment: Readonly<Record<string, string | undefined>>,
  ): string {
    const resolved = value.replaceAll(/\$\{\{\s*env\.([A-Za-z_]\w*)\s*\}\}/g, (_, variable: string) => {
      const text = variable.startsWith(prefix) ? environment[variable] : undefined;
      if (!variable.startsWith(prefix)) {
        this.#issue(`webhooks.headers.${name}: ${variable} does not begin with ${prefix}`);
      } else if (text === undefined) this.#issue(`webhooks.headers.${name}: ${variable} is not set`);
      return text ?? '';
    });
    // Just these would split the header.
    if (/[\0\r\n]/.test(resolved)) this.#issue(`webhooks.headers.${name}: contains a line break`);
    return resolved;
  }

  #sweepIntervalMs(): number {
    const asked = [
      this.#file.store?.ttl?.sweep_interval_minutes,
      this.#file.checkpointer?.ttl?.sweep_interval_minutes,
    ].filter((minutes) => typeof minutes === 'number');
    return asked.length === 0 ? DEFAULT_SWEEP_MS : Math.min(...asked) * MINUTE_MS;
  }

  #checkUnsupported(): void {
    const { auth, encryption, http, store, checkpointer } = this.#file;
    if (auth) {
      this.#issue('auth: custom authentication is not supported; remove it and set DEPLOYMENT_API_KEYS instead');
    }
    if (encryption) this.#issue('encryption: is not supported; data would be stored unencrypted');
    if (http?.app) this.#warn('http.app: custom routes are not served');
    if (store?.index) this.#warn('store.index: there is no vector index; searches ignore query');
    if (checkpointer?.path) this.#warn('checkpointer.path: ignored; checkpoints are kept by this server');
  }
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    // That is how the platform says no.
    return false;
  }
}
