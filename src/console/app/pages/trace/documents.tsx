/** What a retriever found: each document with its score and where it came from. */
import { Json } from '../../parts/json.tsx';
import { asObject } from './conversation.ts';
import { LongText } from './messages.tsx';

export interface FoundDocument {
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Null: this is no list of documents. */
export function readDocuments(value: unknown): readonly FoundDocument[] | null {
  const list = asObject(value)?.['documents'] ?? value;
  if (!Array.isArray(list) || list.length === 0) return null;
  const found: FoundDocument[] = [];
  for (const item of list as unknown[]) {
    const object = asObject(item);
    const body = asObject(object?.['kwargs']) ?? object;
    const text = body?.['page_content'] ?? body?.['pageContent'] ?? body?.['content'] ?? body?.['text'];
    if (body === null || typeof text !== 'string') return null;
    const { score } = body;
    found.push({ text, metadata: { ...(score === undefined ? {} : { score }), ...asObject(body['metadata']) } });
  }
  return found;
}

export function Documents({ documents }: { readonly documents: readonly FoundDocument[] }) {
  return (
    <ol class="documents">
      {documents.map(({ text, metadata: { score, ...others } }, index) => {
        const source = others['source'] ?? others['title'] ?? others['id'];
        return (
          <li key={index}>
            <header>
              <span class="badge">{index + 1}</span>
              {typeof source === 'string' && <strong class="cut">{source}</strong>}
              <span class="grow" />
              {typeof score === 'number' && (
                <span class="badge badge-accent">score {Number(score.toPrecision(4))}</span>
              )}
            </header>
            <LongText text={text} asMarkdown={false} />
            {Object.keys(others).length > 0 && <Json value={others} openDepth={0} />}
          </li>
        );
      })}
    </ol>
  );
}
