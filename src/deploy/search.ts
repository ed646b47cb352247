/** What every search has in common: a page, an order, chosen fields, and the pagination headers. */
import { z } from 'zod';
import { listOf } from './bounds.ts';
import type { Page } from './store/model.ts';

export const limitField = z.int().min(1).max(1000).nullish();
export const offsetField = z.int().min(0).nullish();
export const pageFields = { limit: limitField, offset: offsetField };
export const sortOrder = z.enum(['asc', 'desc']).nullish();
const MAX_FIELD_COUNT = 100;
export const selectField = listOf(z.string(), { max: MAX_FIELD_COUNT }).nullish();

const DEFAULT_LIMIT = 10;

export function pageOf(
  body: { limit?: number | null | undefined; offset?: number | null | undefined },
  defaultLimit = DEFAULT_LIMIT,
): Page {
  return { limit: body.limit ?? defaultLimit, offset: body.offset ?? 0 };
}

export function paginationHeaders(page: Page, shownCount: number, totalCount: number): Record<string, string> {
  const next = page.offset + shownCount;
  return {
    'x-pagination-total': String(totalCount),
    ...(next < totalCount ? { 'x-pagination-next': String(next) } : {}),
  };
}
