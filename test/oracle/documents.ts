/** Retrieval, reranking and embedding keys (row 5): documents in the backend's shape. */
import { isObject, object, slice, type Json, type JsonObject } from './json.ts';
import { readLenient } from './lenient.ts';
import type { Span } from './span.ts';
import { family, J, JValue, nonEmptyString } from './values.ts';
import { wrap } from './wrapping.ts';

export function retrievalInputs(span: Span): JsonObject | undefined {
  const { attributes } = span;
  const query = attributes.first('gen_ai.retrieval.query.text');
  return query === undefined ? undefined : object(['query', query]);
}

export function rerankerInputs(span: Span): JsonObject | undefined {
  const { attributes } = span;
  const query = attributes.first('reranker.query');
  const documents = indexedDocuments(span, 'reranker.input_documents.');
  if (query === undefined && documents.length === 0) return undefined;
  return object(
    ['query', query],
    ['documents', documents.length > 0 ? documents : undefined],
    ['top_k', attributes.first('reranker.top_k')],
  );
}

export function embeddingInputs(span: Span): JsonObject | undefined {
  const texts = embeddings(span, 'embedding.text');
  return texts.length === 0 ? undefined : object(['input', texts]);
}

/** `input.value` of a retriever is its query. */
export function queryOf(parsed: Json | undefined): JsonObject | undefined {
  if (parsed === undefined || parsed === '') return undefined;
  if (!isObject(parsed)) return object(['query', parsed]);
  const query = ['query', 'question', 'input'].map((name) => nonEmptyString(parsed.get(name))).find(Boolean);
  return query === undefined ? parsed : object(['query', query]);
}

export function retrievalOutputs(span: Span): JsonObject | undefined {
  const value = JValue(span.attributes.raw('gen_ai.retrieval.documents'));
  const items = isObject(value) && Array.isArray(value.get('documents')) ? value.get('documents') : value;
  if (Array.isArray(items)) return object(['documents', items.map(looseDocument).filter((d) => d !== undefined)]);
  const wrapped = wrap(J(span.attributes.raw('gen_ai.retrieval.documents')), 'output', span.runType);
  if (wrapped !== undefined) return wrapped;
  const documents = indexedDocuments(span, 'retrieval.documents.');
  return documents.length === 0 ? undefined : object(['documents', documents]);
}

export function rerankerOutputs(span: Span): JsonObject | undefined {
  const documents = indexedDocuments(span, 'reranker.output_documents.');
  return documents.length === 0 ? undefined : object(['documents', documents]);
}

/** Vectors, unless the whole response is there as an object. */
export function embeddingOutputs(span: Span, outputValue: Json | undefined): JsonObject | undefined {
  const vectors = embeddings(span, 'embedding.vector').map((vector) => JValue(vector) ?? null);
  if (vectors.length === 0) return undefined;
  return isObject(outputValue) ? outputValue : object(['embeddings', vectors]);
}

function embeddings(span: Span, name: string): Json[] {
  const members = family(span.attributes.map, 'embedding.embeddings.');
  return members
    .map((embedding) => embedding.get(name))
    .filter((value) => value !== undefined && value !== '') as Json[];
}

function indexedDocuments(span: Span, prefix: string): JsonObject[] {
  const documents: JsonObject[] = [];
  for (const members of family(span.attributes.map, prefix)) {
    const [content, metadata, id, score] = ['content', 'metadata', 'id', 'score'].map((n) =>
      members.get(`document.${n}`),
    );
    if ([content, metadata, id, score].every((value) => value === undefined)) continue;
    const merged = metadataOf(metadata);
    if (id !== undefined) merged.set('id', id);
    if (score !== undefined) merged.set('score', score);
    documents.push(documentOf(content === undefined ? '' : slice(content), merged));
  }
  return documents;
}

function documentOf(pageContent: string, metadata: JsonObject): JsonObject {
  return object(['type', 'Document'], ['page_content', pageContent], ['metadata', metadata]);
}

function metadataOf(value: Json | undefined): JsonObject {
  if (J(value) === undefined) return object();
  const parsed = typeof value === 'string' ? readLenient(value) : JValue(value);
  return isObject(parsed) ? new Map(parsed) : object(['raw', value]);
}

/** An item of `gen_ai.retrieval.documents`: what is not its text is metadata. */
function looseDocument(item: Json): JsonObject | undefined {
  if (typeof item === 'string') return documentOf(item, object());
  if (!isObject(item)) return undefined;
  const named = ['page_content', 'content', 'text'].find((name) => typeof item.get(name) === 'string');
  const inner = item.get('metadata');
  const metadata: JsonObject = isObject(inner) ? new Map(inner) : object();
  for (const [name, value] of item) {
    if (name === named || name === 'type' || (name === 'metadata' && isObject(inner))) continue;
    metadata.set(name, value);
  }
  const content = named === undefined ? undefined : item.get(named);
  return documentOf(typeof content === 'string' ? content : '', metadata);
}

/** Retriever outputs that were given whole: documents get their type. */
export function typeDocuments(outputs: JsonObject | undefined, span: Span): JsonObject | undefined {
  if (outputs === undefined || span.runType !== 'retriever') return outputs;
  const documents = outputs.get('documents');
  if (Array.isArray(documents)) return new Map([...outputs, ['documents', documents.map(typed)]]);
  return outputs;
}

/** The value of rows 9 to 12 before wrapping: an array of documents is `documents` on a retriever. */
export function documentsOfArray(value: Json | undefined, span: Span): JsonObject | undefined {
  if (span.runType !== 'retriever' || !Array.isArray(value) || value.length === 0) return undefined;
  const all = value.every((item) => isObject(item) && typeof item.get('page_content') === 'string');
  return all ? object(['documents', value.map(typed)]) : undefined;
}

function typed(item: Json): Json {
  if (!isObject(item) || !item.has('page_content') || item.has('type')) return item;
  return new Map<string, Json>([...item, ['type', 'Document']]);
}
