/** `GET /api/console`: what this process has to show; the page draws its navigation from it. */
export interface ConsoleFacts {
  readonly version: string;
  /** Whether runs are kept here (`/api/traces` and the rest); false where they go to a backend elsewhere. */
  readonly traces: boolean;
  /** Where runs are uploaded to. */
  readonly endpoint: string;
  readonly secure: boolean;
  /** Null: not served. */
  readonly deployment: {
    /** Null: the port that serves this. */
    readonly port: number | null;
    /** Before every path of it; empty or beginning with a slash. */
    readonly prefix: string;
    readonly graph_ids: readonly string[];
  } | null;
}
