import type { Target } from '../target.ts';
import { wireMutators } from '../wiretree.ts';
import { decodeTarget } from './decode.ts';

export const open = (): Target => decodeTarget('protobuf', wireMutators);
