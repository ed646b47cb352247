/** Numbers and times as people read them. */

const NUMBER = new Intl.NumberFormat('en');
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `340 µs`, `12.3 ms`, `1.23 s`, `2 m 05 s`; a dash where it is not known. */
export function duration(ms: number | null): string {
  if (ms === null) return '–';
  if (ms < 1) return ms === 0 ? '0 ms' : `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${digits(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${digits(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${padded(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${padded(Math.floor(whole / 60) % 60)} m`;
}

/** Three digits that count. */
function digits(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

function padded(value: number): string {
  return String(value).padStart(2, '0');
}

export function count(value: number): string {
  return NUMBER.format(value);
}

/** `1.2K`, `3M`. */
export function compact(value: number): string {
  return value < 1000 ? String(value) : COMPACT.format(value);
}

/** Dollars; small sums with as many places as they need. */
export function cost(value: number | null): string {
  if (value === null) return '–';
  if (value === 0) return '$0';
  return value >= 1 ? `$${value.toFixed(2)}` : `$${Number(value.toPrecision(2)).toFixed(decimals(value))}`;
}

function decimals(value: number): number {
  return Math.min(10, Math.max(2, 1 - Math.floor(Math.log10(value))));
}

export function bytes(value: number): string {
  for (const [unit, size] of [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 2 ** 10],
  ] as const) {
    if (value >= size) return `${digits(value / size)} ${unit}`;
  }
  return `${value} B`;
}

/** Time of day, with the date before it where that is not today's. Local, as people's clocks are. */
export function time(rfc3339: string, nowMs = Date.now()): string {
  const date = new Date(rfc3339);
  const clock = `${padded(date.getHours())}:${padded(date.getMinutes())}:${padded(date.getSeconds())}`;
  return date.toDateString() === new Date(nowMs).toDateString()
    ? clock
    : `${MONTHS[date.getMonth()] ?? ''} ${date.getDate()} ${clock}`;
}

/** For a tooltip: everything there is to say about it. */
export function wholeTime(rfc3339: string): string {
  return `${new Date(rfc3339).toString()}\n${rfc3339}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const DURATION_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
};

/** `500`, `500ms`, `2s`, `1.5m` → milliseconds; null when it is none. */
export function readDuration(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?$/i.exec(text.trim());
  return match === null ? null : Number(match[1]) * (DURATION_UNITS[match[2]?.toLowerCase() ?? ''] ?? 1);
}
