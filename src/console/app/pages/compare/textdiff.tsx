/** What one text has and another has not, within each other. */
import { diffLines, diffWordsWithSpace, type ChangeObject } from 'diff';
import { useMemo } from 'preact/hooks';
import type { RunDetail } from '../../../../backend/api.ts';
import { readConversation, type Block } from '../trace/conversation.ts';
import { readDocuments } from '../trace/documents.tsx';

/** Longer ones are compared line by line. */
const WORDS_LENGTH = 20_000;
const TIMEOUT_MS = 400;

export function TextDiff({ left, right }: { readonly left: string; readonly right: string }) {
  const changes = useMemo(() => compareTexts(left, right), [left, right]);
  if (changes === null) return <p class="quiet">The two differ too much to be compared.</p>;
  if (left === right) return <p class="quiet">{left === '' ? 'Both are empty.' : 'Both are the same.'}</p>;
  return (
    <pre class="diff" tabIndex={0}>
      {changes.map(({ value, added, removed }, index) =>
        added ? (
          <ins key={index}>{value}</ins>
        ) : removed ? (
          <del key={index}>{value}</del>
        ) : (
          <span key={index}>{value}</span>
        ),
      )}
    </pre>
  );
}

/** Null: it would take too long. */
export function compareTexts(left: string, right: string): readonly ChangeObject<string>[] | null {
  const isShort = left.length + right.length < WORDS_LENGTH;
  const byWords = isShort ? diffWordsWithSpace(left, right, { timeout: TIMEOUT_MS }) : undefined;
  return byWords ?? diffLines(left, right, { timeout: TIMEOUT_MS }) ?? null;
}

/** Inputs or outputs as text: what was said, found or returned, else the JSON. */
export function textOfDocument(document: RunDetail['inputs']): string {
  if (document === null) return '';
  const conversation = readConversation(document);
  if (conversation !== null) {
    return conversation.messages
      .map(({ role, blocks }) => `${role}:\n${blocks.map(textOfBlock).join('\n')}`)
      .join('\n\n');
  }
  const documents = readDocuments(document);
  if (documents !== null) return documents.map(({ text }, index) => `${index + 1}. ${text}`).join('\n\n');
  const values = Object.values(document);
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : JSON.stringify(document, null, 2);
}

function textOfBlock(block: Block): string {
  switch (block.kind) {
    case 'text':
    case 'refusal':
      return block.text;
    case 'reasoning':
      return `(reasoning) ${block.text}`;
    case 'tool-call':
      return `calls ${block.name} ${JSON.stringify(block.args, null, 2)}`;
    case 'tool-result':
      return typeof block.value === 'string' ? block.value : JSON.stringify(block.value, null, 2);
    case 'image':
      return `(picture, ${block.url.length} characters)`;
    case 'other':
      return JSON.stringify(block.value, null, 2);
  }
}
