/** Answers to what a run has stopped for. */
import { useState } from 'preact/hooks';
import { Json } from '../../parts/json.tsx';
import type { Interrupt } from './api.ts';
import { readAnswer } from './jsontext.ts';

export interface ResumeProps {
  readonly interrupts: readonly Interrupt[];
  /** Without a thread there is nothing to go on with. */
  readonly disabled: boolean;
  /** With one interrupt its answer, with several an object of answers by the interrupts' ids. */
  readonly onResume: (answer: unknown) => void;
}

export function Resume({ interrupts, disabled, onResume }: ResumeProps) {
  const [answers, setAnswers] = useState<Readonly<Record<number, string>>>({});
  const isWhole = interrupts.every((_, index) => (answers[index] ?? '').trim() !== '');
  const send = (): void => {
    if (!isWhole || disabled) return;
    const read = interrupts.map(({ id }, index) => [id ?? String(index), readAnswer(answers[index] ?? '')] as const);
    onResume(read.length === 1 ? read[0]?.[1] : Object.fromEntries(read));
  };
  return (
    <form
      class="card card-warn resume"
      aria-label="Answer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <h3>The run waits for {interrupts.length === 1 ? 'an answer' : `${interrupts.length} answers`}</h3>
      {interrupts.map(({ id, value }, index) => (
        <label key={id ?? index}>
          <Json value={value} />
          <textarea
            rows={1}
            placeholder="Text, or JSON"
            disabled={disabled}
            aria-label={interrupts.length === 1 ? 'Your answer' : `Answer ${index + 1}`}
            value={answers[index] ?? ''}
            onInput={(event) => setAnswers({ ...answers, [index]: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              send();
            }}
          />
        </label>
      ))}
      <div class="ways-buttons">
        {disabled && <span class="quiet">Without a thread it cannot be answered.</span>}
        <span class="grow" />
        <button type="submit" class="primary" disabled={!isWhole || disabled}>
          Resume
        </button>
      </div>
    </form>
  );
}
