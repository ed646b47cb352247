/** A conversation as people read one: who says what, what is called with what, what comes back, what was thought. */
import { useState } from 'preact/hooks';
import { Json } from '../../parts/json.tsx';
import { Markdown, WebLink } from '../../parts/markdown.tsx';
import { pictureUrl } from '../../parts/safeurl.ts';
import { parsed, type Block, type Message } from './conversation.ts';

const ROLE_WORDS: Readonly<Record<string, string>> = {
  user: 'User',
  assistant: 'Assistant',
  system: 'System',
  developer: 'Developer',
  tool: 'Tool',
  function: 'Tool',
};
/** Of a long conversation, the beginning and what is new; the rest on demand. */
const SHOWN_FIRST = 4;
const SHOWN_LAST = 12;
const LONG_TEXT = 4000;

export function Messages({ messages }: { readonly messages: readonly Message[] }) {
  const [all, setAll] = useState(false);
  const hiddenCount = all ? 0 : Math.max(0, messages.length - SHOWN_FIRST - SHOWN_LAST);
  const shown = messages.map((message, index) => ({ message, index }));
  const head = hiddenCount === 0 ? shown : shown.slice(0, SHOWN_FIRST);
  const tail = hiddenCount === 0 ? [] : shown.slice(-SHOWN_LAST);
  return (
    <ol class="messages">
      {head.map(({ message, index }) => (
        <MessageItem key={index} message={message} />
      ))}
      {hiddenCount > 0 && (
        <li>
          <button type="button" class="small" onClick={() => setAll(true)}>
            {hiddenCount} more messages
          </button>
        </li>
      )}
      {tail.map(({ message, index }) => (
        <MessageItem key={index} message={message} />
      ))}
    </ol>
  );
}

function MessageItem({ message }: { readonly message: Message }) {
  const known = message.role in ROLE_WORDS;
  return (
    <li class={`message message-${known ? message.role : 'other'}`}>
      <header>
        <strong>{ROLE_WORDS[message.role] ?? (message.role || 'Message')}</strong>
        {message.name !== '' && <code>{message.name}</code>}
        <span class="grow" />
        {message.finish !== '' && message.finish !== 'stop' && <span class="badge">{message.finish}</span>}
      </header>
      {message.blocks.length === 0 && <span class="quiet">empty</span>}
      {message.blocks.map((block, index) => (
        <BlockView key={index} block={block} role={message.role} />
      ))}
    </li>
  );
}

function BlockView({ block, role }: { readonly block: Block; readonly role: string }) {
  switch (block.kind) {
    case 'text':
      return <LongText text={block.text} asMarkdown={role !== 'tool' && role !== 'system'} />;
    case 'refusal':
      return <p class="bad">Refused: {block.text}</p>;
    case 'reasoning':
      return (
        <details class="reasoning" open={block.text.length < LONG_TEXT}>
          <summary>Reasoning</summary>
          <LongText text={block.text} asMarkdown />
        </details>
      );
    case 'tool-call':
      return (
        <div class="tool-call">
          <header>
            <span class="badge badge-tool">calls</span>
            <code class="tool-name">{block.name || '?'}</code>
            {block.id !== '' && <small class="quiet mono">{block.id}</small>}
          </header>
          <Anything value={block.args} />
        </div>
      );
    case 'tool-result':
      return (
        <div class="tool-result">
          {(block.name !== '' || block.id !== '') && (
            <header>
              <span class="badge">returns</span>
              {block.name !== '' && <code class="tool-name">{block.name}</code>}
              {block.id !== '' && <small class="quiet mono">{block.id}</small>}
            </header>
          )}
          <Anything value={parsed(block.value)} />
        </div>
      );
    case 'image':
      return <Picture url={block.url} />;
    case 'other':
      return <Json value={block.value} />;
  }
}

/** Pictures that are in the trace itself; others are named, not fetched. */
function Picture({ url }: { readonly url: string }) {
  const shown = pictureUrl(url);
  if (shown !== null) return <img class="picture" src={shown} alt="In the message" />;
  return (
    <p class="quiet">
      Picture: <WebLink href={url}>{url.slice(0, 200)}</WebLink>
    </p>
  );
}

/** Text as text, anything else as JSON. */
export function Anything({ value }: { readonly value: unknown }) {
  return typeof value === 'string' ? (
    <LongText text={value} asMarkdown={false} />
  ) : (
    <Json value={value} openDepth={3} />
  );
}

export function LongText({ text, asMarkdown }: { readonly text: string; readonly asMarkdown: boolean }) {
  const [whole, setWhole] = useState(false);
  const cut = !whole && text.length > 2 * LONG_TEXT;
  const shown = cut ? text.slice(0, LONG_TEXT) : text;
  return (
    <>
      {asMarkdown ? <Markdown text={shown} /> : <div class="text">{shown}</div>}
      {cut && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          {(text.length - LONG_TEXT).toLocaleString('en')} more characters
        </button>
      )}
    </>
  );
}
