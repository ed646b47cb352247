/** JSON objects put together from rendered fields, so that large documents are spliced in as the text that they are. */

/** Name and rendered value, in order. */
export type Field = readonly [name: string, json: string];

/** `select` names the wanted fields; null wants all. */
export function objectJson(fields: readonly Field[], select: readonly string[] | null = null): string {
  const wanted = select === null ? fields : fields.filter(([name]) => select.includes(name));
  return `{${wanted.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`;
}

/** A field whose value is rendered here. */
export function field(name: string, value: unknown): Field {
  return [name, JSON.stringify(value ?? null)];
}

export function arrayJson(items: readonly string[]): string {
  return `[${items.join(',')}]`;
}
