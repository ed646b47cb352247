/** OpenInference's indexed documents: those of a retriever, and those that go into a reranker and come out. */
import type { FieldCode } from '../../indexed.ts';
import { ValueType } from '../../kernel/kernel.ts';
import { Group } from '../../keys.ts';
import type { Source, Span } from '../../span.ts';
import type { Toolbox } from '../../toolbox.ts';
import { Loaded } from '../../value.ts';
import type { Writer } from '../../writer.ts';

const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const DocumentField = { Content: 1, Metadata: 2, Id: 3, Score: 4 } as const;
const documentFields = (prefix: string): [string, FieldCode][] => [
  [`${prefix}.#.document.content`, DocumentField.Content],
  [`${prefix}.#.document.metadata`, DocumentField.Metadata],
  [`${prefix}.#.document.id`, DocumentField.Id],
  [`${prefix}.#.document.score`, DocumentField.Score],
];

export interface IndexedDocuments {
  readonly retrieverOutputs: Source;
  readonly rerankerInputs: Source;
  readonly rerankerOutputs: Source;
}

export function indexedDocuments({ keys, docs, values, view, families, lit }: Toolbox): IndexedDocuments {
  const key = {
    rerankerQuery: keys.key('reranker.query', Group.Reranker),
    topK: keys.key('reranker.top_k'),
  };
  const retrieved = families.declare(documentFields('retrieval.documents'));
  const reranked = families.declare(documentFields('reranker.output_documents'));
  const toRerank = families.declare(documentFields('reranker.input_documents'));
  const l = {
    idIs: lit('"id":'),
    queryIs: lit('"query":'),
    topKIs: lit('"top_k":'),
    documentsOpen: lit('{"documents":['),
    documentsIs: lit('"documents":['),
    document: lit('{"type":"Document","page_content":'),
    noContent: lit('""'),
    metadataIs: lit(',"metadata":{'),
    scoreIs: lit('"score":'),
    rawIs: lit('"raw":'),
    id: lit('id'),
    score: lit('score'),
  };

  function writeDocument(from: number, to: number, out: Writer): void {
    const content = view.find(from, to, DocumentField.Content);
    const metadata = view.find(from, to, DocumentField.Metadata);
    const id = view.find(from, to, DocumentField.Id);
    const score = view.find(from, to, DocumentField.Score);
    out.literal(l.document);
    if (content < 0) out.literal(l.noContent);
    else if (view.type(content) === ValueType.String) out.string(view.a(content), view.b(content));
    else {
      const loaded = values.load(view.type(content), view.a(content), view.b(content));
      if (loaded === Loaded.Absent) out.literal(l.noContent);
      else values.copyAsString(loaded, out);
    }
    out.literal(l.metadataIs);
    if (metadata >= 0) writeDocumentMetadata(metadata, id >= 0, score >= 0, out);
    if (id >= 0) {
      out.literal(l.idIs);
      values.write(view.type(id), view.a(id), view.b(id), out);
      out.comma();
    }
    if (score >= 0) {
      out.literal(l.scoreIs);
      values.write(view.type(score), view.a(score), view.b(score), out);
      out.comma();
    }
    out.close(CLOSE_OBJECT);
    out.byte(CLOSE_OBJECT);
    out.comma();
  }

  function writeDocumentMetadata(metadata: number, hasId: boolean, hasScore: boolean, out: Writer): void {
    const type = view.type(metadata);
    const a = view.a(metadata);
    const b = view.b(metadata);
    const loaded = values.load(type, a, b);
    if (loaded === Loaded.Absent) return;
    const node = values.loadLenientObject(type, a, b);
    if (node === 0) {
      out.literal(l.rawIs);
      values.write(type, a, b, out);
      out.comma();
      return;
    }
    const stop = docs.next(node);
    for (let name = docs.first(node); name < stop; name = docs.next(docs.value(name))) {
      if (!docs.counts(node, name)) continue;
      if ((hasId && docs.is(name, l.id)) || (hasScore && docs.is(name, l.score))) continue;
      docs.copy(name, out);
      out.byte(0x3a);
      docs.copy(docs.value(name), out);
      out.comma();
    }
  }

  /** Writes a family of documents, each with a comma. */
  function documents(family: number, span: Span, out: Writer): void {
    if ((span.families & family) === 0) return;
    view.select(span.attributes, family);
    for (let from = 0; from < view.count;) {
      const to = view.groupEnd(from);
      writeDocument(from, to, out);
      from = to;
    }
  }

  const documentOutputs =
    (family: number): Source =>
    (span, out) => {
      if ((span.families & family) === 0) return false;
      out.literal(l.documentsOpen);
      documents(family, span, out);
      out.close(CLOSE_ARRAY);
      out.byte(CLOSE_OBJECT);
      return true;
    };

  const present = (span: Span, name: number): boolean => {
    const type = span.attributes.type(name);
    if (type === ValueType.String) return span.attributes.b(name) > 0;
    return type !== ValueType.Absent;
  };

  const rerankerInputs: Source = (span, out) => {
    const hasQuery = present(span, key.rerankerQuery);
    if (!hasQuery && (span.families & toRerank) === 0) return false;
    const { attributes } = span;
    out.byte(OPEN_OBJECT);
    if (hasQuery) {
      out.literal(l.queryIs);
      values.write(
        attributes.type(key.rerankerQuery),
        attributes.a(key.rerankerQuery),
        attributes.b(key.rerankerQuery),
        out,
      );
      out.comma();
    }
    if ((span.families & toRerank) !== 0) {
      out.literal(l.documentsIs);
      documents(toRerank, span, out);
      out.close(CLOSE_ARRAY);
      out.comma();
    }
    if (present(span, key.topK)) {
      out.literal(l.topKIs);
      values.write(attributes.type(key.topK), attributes.a(key.topK), attributes.b(key.topK), out);
      out.comma();
    }
    out.close(CLOSE_OBJECT);
    return true;
  };

  return {
    retrieverOutputs: documentOutputs(retrieved),
    rerankerInputs,
    rerankerOutputs: documentOutputs(reranked),
  };
}
