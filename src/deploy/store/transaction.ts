/**
 * A whole transaction as one query of Kysely's, for SQLite alone: begin, the statements, commit, in one go. Statement by statement, each
 * of them would take its way through Kysely's promises, which cost more than SQLite needs for it.
 */
import { CompiledQuery } from 'kysely';

export interface TransactionQuery extends CompiledQuery {
  readonly statements: readonly CompiledQuery[];
}

/** Not inside of another transaction. Yields no rows; when a statement fails, nothing has happened. */
export function transactionOf(statements: readonly CompiledQuery[]): TransactionQuery {
  return { ...CompiledQuery.raw('begin immediate'), statements };
}

export function isTransaction(query: CompiledQuery): query is TransactionQuery {
  return 'statements' in query;
}
