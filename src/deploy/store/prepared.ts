/**
 * Queries of the path that every run takes are built and compiled once; each call only binds values. Building and compiling costs
 * several times as much as SQLite needs to execute them.
 */
import type { CompiledQuery, Kysely, QueryResult } from 'kysely';

type Slots<P> = <K extends keyof P & string>(name: K) => P[K];
interface Compilable<R> {
  compile(): CompiledQuery<R>;
}

export interface Prepared<P, R> {
  /** Runs on a database or on a transaction of it. */
  (on: Pick<Kysely<never>, 'executeQuery'>, values: P): Promise<QueryResult<R>>;
  /** The statement with its values, to be run later. */
  bind(values: P): CompiledQuery<R>;
}

class Slot {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** `build` receives `slot`: `slot('runId')` stands for the value `runId` of each call. */
export function prepare<P extends object, R>(build: (slot: Slots<P>) => Compilable<R>): Prepared<P, R> {
  const compiled = build((name) => new Slot(name) as never).compile();
  const sources = compiled.parameters.map((parameter) => (parameter instanceof Slot ? parameter.name : null));
  const bind = (values: P): CompiledQuery<R> => ({
    ...compiled,
    parameters: sources.map((name, index) =>
      name === null ? compiled.parameters[index] : (values as Record<string, unknown>)[name],
    ),
  });
  return Object.assign((on: Pick<Kysely<never>, 'executeQuery'>, values: P) => on.executeQuery<R>(bind(values)), {
    bind,
  });
}
