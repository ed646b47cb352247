/** For `/openapi.json`. */
import type { DescribedOperation } from '../core/operation.ts';

export const CONSOLE_OPERATIONS: readonly DescribedOperation[] = [
  {
    method: 'GET',
    pattern: '/api/console',
    tag: 'Console',
    summary: 'What this process has to show',
    answer: 'version, whether runs are kept here, and where the deployment API is',
  },
];
