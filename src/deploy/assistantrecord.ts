/** Assistants in the wire's spelling. */
import { field, objectJson } from './fields.ts';
import type { Assistant } from './store/model.ts';
import { isoTime } from './times.ts';

export function assistantJson(assistant: Assistant, select: readonly string[] | null = null): string {
  return objectJson([...fieldsOf(assistant), field('updated_at', isoTime(assistant.updatedMs))], select);
}

/** A version has no time of update: it never changes. */
export function assistantVersionJson(assistant: Assistant): string {
  return objectJson(fieldsOf(assistant));
}

function fieldsOf(assistant: Assistant) {
  return [
    field('assistant_id', assistant.assistantId),
    field('graph_id', assistant.graphId),
    field('name', assistant.name),
    field('description', assistant.description),
    field('version', assistant.version),
    field('config', assistant.config),
    field('context', assistant.context),
    field('metadata', assistant.metadata),
    field('created_at', isoTime(assistant.createdMs)),
  ];
}
