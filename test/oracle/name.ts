/** Name, project and tags: the head of a run. */
import type { JsonObject } from './json.ts';
import { JArray, nonEmptyString, trim, uuidOf, type Attributes } from './values.ts';
import type { Span } from './span.ts';
import type { Json } from './json.ts';

/** Where the Vercel AI SDK puts a caller's own metadata; the first wins. */
export const vercelMetadataPrefixes = ['ai.telemetry.metadata.', 'ai.settings.context.', 'ai.settings.runtimeContext.'];

export function nameOf(span: Span): string {
  const { attributes } = span;
  const operation = attributes.string('gen_ai.operation.name');
  const when = (condition: boolean, key: string): string | undefined =>
    condition ? attributes.string(key) : undefined;
  return (
    attributes.string('langsmith.trace.name') ??
    attributes.string(
      ...vercelMetadataPrefixes.map((prefix) => `${prefix}ls_run_name`),
      'langsmith.metadata.ls_run_name',
    ) ??
    attributes.string('traceloop.entity.name') ??
    when(attributes.string('openinference.span.kind')?.toLowerCase() === 'tool', 'tool.name') ??
    when(attributes.string('ai.operationId') === 'ai.toolCall', 'ai.toolCall.name') ??
    when(span.runType === 'tool', 'gen_ai.tool.name') ??
    when(operation === 'invoke_agent', 'gen_ai.agent.name') ??
    when(operation === 'invoke_workflow', 'gen_ai.workflow.name') ??
    nonEmptyString(span.input.name) ??
    operation ??
    'unnamed'
  );
}

/** `session_name` or `session_id`, never both. */
export function projectOf(attributes: Attributes, project: string | null): [name: string, value: string] {
  if (project !== null) return ['session_name', project];
  const fromVercel = (key: string): (string | undefined)[] =>
    vercelMetadataPrefixes.map((prefix) => attributes.string(prefix + key));
  const id = uuidOf(attributes.raw('langsmith.trace.session_id'));
  if (id !== undefined) return ['session_id', id];
  const name = attributes.string('langsmith.trace.session_name');
  if (name !== undefined) return ['session_name', name];
  const vercelId = fromVercel('ls_project_id').map(uuidOf).find(Boolean);
  if (vercelId !== undefined) return ['session_id', vercelId];
  const vercelName = fromVercel('ls_project_name').find(Boolean);
  return ['session_name', vercelName ?? 'default'];
}

export function tagsOf(attributes: Attributes): string[] | undefined {
  const tags = ['langsmith.span.tags', 'tag.tags'].flatMap((key) => tagList(attributes.raw(key)));
  const unique = [...new Set(tags.map(trim).filter((tag) => tag !== ''))];
  return unique.length === 0 ? undefined : unique;
}

function tagList(value: Json | undefined): string[] {
  const list = JArray(value) ?? (typeof value === 'string' ? value.split(',') : []);
  return list.filter((item) => typeof item === 'string');
}

export function headOf(span: Span, status: string, project: string | null): JsonObject {
  const head: JsonObject = new Map<string, Json>([
    ['name', nameOf(span)],
    ['run_type', span.runType],
    ['status', status],
    projectOf(span.attributes, project),
  ]);
  const tags = tagsOf(span.attributes);
  if (tags !== undefined) head.set('tags', tags);
  const example = uuidOf(span.attributes.raw('langsmith.reference_example_id'));
  if (example !== undefined) head.set('reference_example_id', example);
  return head;
}
