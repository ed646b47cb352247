/** What the owner of the backend's thread and the thread itself say to each other. Plain objects: they are cloned. */

export type ToBackend = { readonly kind: 'stop'; readonly deadlineMs: number };

export type FromBackend =
  | { readonly kind: 'ready'; readonly url: string }
  /** It could not start; the thread ends. */
  | { readonly kind: 'failed'; readonly message: string }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: object;
      readonly message: string;
    };
