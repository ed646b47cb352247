/** RFC 3339 in UTC with up to nine digits of a second → microseconds since the epoch; a `Date` would round to milliseconds. */
export function microseconds(rfc3339: string): number {
  const fraction = /\.(\d+)/.exec(rfc3339)?.[1] ?? '';
  const wholeMs = Date.parse(rfc3339.replace(/\.\d+/, ''));
  return wholeMs * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6));
}
