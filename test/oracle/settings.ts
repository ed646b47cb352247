/** How the tests translate when nothing else is said. */
import type { TranslateSettings } from './translate.ts';

export const defaultSettings: TranslateSettings = {
  genericAttributes: false,
  project: null,
  receivedUs: 1_760_000_000_000_000,
};
