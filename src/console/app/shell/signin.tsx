/** Asks for a key where the process wants one. */
import { useState } from 'preact/hooks';
import { useServices } from '../services.ts';

export function SignIn() {
  const { key } = useServices();
  const [typed, setTyped] = useState('');
  const wasWrong = key.value.value !== '';
  return (
    <main class="signin">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.trim() !== '') key.set(typed.trim());
        }}
      >
        <h1>Collector Proxy</h1>
        <p>This collector wants an API key: one of its DEPLOYMENT_API_KEYS. It is kept in this tab only.</p>
        <label>
          API key
          <input
            type="password"
            autocomplete="current-password"
            autofocus
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        {wasWrong && (
          <p class="bad" role="alert">
            The key was not accepted.
          </p>
        )}
        <button type="submit" class="primary">
          Open the console
        </button>
      </form>
    </main>
  );
}
