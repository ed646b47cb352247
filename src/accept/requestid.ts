/** Request ids: short, unique, unguessable enough to be harmless in a log. */
import hyperid from 'hyperid';

export type RequestIds = () => string;

export function createRequestIds(): RequestIds {
  return hyperid({ fixedLength: true, urlSafe: true });
}
