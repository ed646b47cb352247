/** A state as people read it: what is next, what is waited for, what failed; the conversation as one, the rest as JSON. */
import { Json } from '../../parts/json.tsx';
import { readConversation } from '../trace/conversation.ts';
import { Messages } from '../trace/messages.tsx';
import type { ThreadState } from './api.ts';

export function StateView({ state }: { readonly state: ThreadState }) {
  const interrupts = state.tasks.flatMap(({ name, interrupts }) =>
    interrupts.map((interrupt) => ({ name, interrupt })),
  );
  const errors = state.tasks.filter(({ error }) => error !== null);
  return (
    <>
      <p class="next-line">
        {state.checkpoint_id === null ? (
          <span class="quiet">Nothing was run yet.</span>
        ) : state.next.length === 0 ? (
          <span class="badge badge-good">at its end</span>
        ) : (
          <>
            <span class="quiet">next</span>
            {state.next.map((node) => (
              <span key={node} class="badge badge-accent">
                {node}
              </span>
            ))}
          </>
        )}
      </p>
      {errors.map(({ id, name, error }) => (
        <section key={id} class="card card-bad" aria-label={`Error in ${name}`}>
          <h3>{name} failed</h3>
          <div class="text">{error}</div>
        </section>
      ))}
      {interrupts.map(({ name, interrupt }, index) => (
        <section key={index} class="card card-warn" aria-label={`Interrupt in ${name}`}>
          <h3>{name} waits for an answer</h3>
          <Json value={interrupt.value} />
        </section>
      ))}
      <Values values={state.values} />
    </>
  );
}

export function Values({ values }: { readonly values: unknown }) {
  const conversation = readConversation(values);
  const rest = conversation?.rest ?? values;
  const isEmpty = conversation !== null && Object.keys(conversation.rest).length === 0;
  return (
    <>
      {conversation !== null && conversation.messages.length > 0 && (
        <section class="card" aria-label="Conversation">
          <Messages messages={conversation.messages} />
        </section>
      )}
      {!isEmpty && (
        <section class="card" aria-label="Values">
          <h3>Values</h3>
          <Json value={rest} openDepth={3} />
        </section>
      )}
    </>
  );
}
