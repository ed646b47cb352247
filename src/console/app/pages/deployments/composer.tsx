/** Where the input is written: a line of chat where the graph takes messages, or JSON that is checked as it is typed. */
import { useState } from 'preact/hooks';
import type { JsonObject } from './api.ts';
import { readJson, skeleton } from './jsontext.ts';

export interface ComposerProps {
  readonly schema: JsonObject | null;
  readonly disabled: boolean;
  /** Whether there is something to go on with, without input. */
  readonly canGoOn: boolean;
  /** `messages`: those in it, to be shown at once. */
  readonly onSend: (input: unknown, messages: readonly JsonObject[]) => void;
}

export function Composer({ schema, disabled, canGoOn, onSend }: ComposerProps) {
  const properties = schema?.['properties'];
  const takesMessages = typeof properties === 'object' && properties !== null && 'messages' in properties;
  const [mode, setMode] = useState<'chat' | 'json' | null>(null);
  const shown = mode ?? (takesMessages ? 'chat' : 'json');
  const [words, setWords] = useState('');
  const [json, setJson] = useState<string | null>(null);
  const text = json ?? skeleton(schema);
  const typed = readJson(text, 'any');
  const problem = shown === 'json' && !typed.ok ? typed.problem : null;
  const canSend = !disabled && (shown === 'chat' ? words.trim() !== '' : typed.ok);
  const send = (): void => {
    if (!canSend) return;
    if (shown === 'chat') {
      const message = { role: 'user', content: words };
      setWords('');
      onSend({ messages: [message] }, [message]);
    } else if (typed.ok) onSend(typed.value, []);
  };
  return (
    <form
      class="composer"
      aria-label="Input"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {shown === 'chat' ? (
        <textarea
          id="composer"
          rows={2}
          aria-label="Message"
          placeholder="Message; enter sends, shift and enter begins a line"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            send();
          }}
        />
      ) : (
        <textarea
          id="composer"
          class="mono"
          rows={6}
          aria-label="Input as JSON"
          aria-invalid={problem !== null}
          aria-describedby="input-problem"
          spellcheck={false}
          value={text}
          onInput={(event) => setJson(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            send();
          }}
        />
      )}
      <div class="ways-buttons">
        {takesMessages && (
          <div class="segments" role="group" aria-label="Kind of input">
            <button type="button" class="small" aria-pressed={shown === 'chat'} onClick={() => setMode('chat')}>
              Chat
            </button>
            <button type="button" class="small" aria-pressed={shown === 'json'} onClick={() => setMode('json')}>
              JSON
            </button>
          </div>
        )}
        <span id="input-problem" class="bad" role="alert">
          {problem}
        </span>
        <span class="grow" />
        {canGoOn && (
          <button
            type="button"
            disabled={disabled}
            title="From the state as it is, without input"
            onClick={() => onSend(null, [])}
          >
            Go on
          </button>
        )}
        <button type="submit" class="primary" disabled={!canSend}>
          Run
        </button>
      </div>
    </form>
  );
}
