import { jsonMutators } from '../jsontree.ts';
import type { Target } from '../target.ts';
import { decodeTarget } from './decode.ts';

export const open = (): Target => decodeTarget('json', jsonMutators);
