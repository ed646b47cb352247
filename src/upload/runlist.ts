/** What a plain upload body holds, for people: reads what our own writer wrote. */

export interface ListedRun {
  readonly id: string;
  readonly name: string;
  /** Bytes of its other parts by name; attachments as `attachment.NAME`. */
  readonly fields: Readonly<Record<string, number>>;
}

const HEAD_END = '\r\n\r\n';
const CRLF_BYTES = 2;

export function listRuns(plain: Buffer): ListedRun[] {
  const runs = new Map<string, { id: string; name: string; fields: Record<string, number> }>();
  for (let at = 0; ;) {
    const headEnd = plain.indexOf(HEAD_END, at, 'latin1');
    if (headEnd < 0) return [...runs.values()];
    const head = plain.toString('latin1', at, headEnd);
    const [, kind = '', id = '', field] = /; name="(post|attachment)\.([^."]*)\.?([^"]*)"/.exec(head) ?? [];
    const lengthBytes = Number(/Content-Length: (\d+)/.exec(head)?.[1] ?? 0);
    const from = headEnd + HEAD_END.length;
    const run = runs.get(id) ?? { id, name: '', fields: {} };
    runs.set(id, run);
    if (kind === 'post' && field === '') run.name = nameIn(plain.toString('utf8', from, from + lengthBytes));
    else run.fields[kind === 'post' ? (field ?? '') : `attachment.${field}`] = lengthBytes;
    at = from + lengthBytes + CRLF_BYTES;
  }
}

function nameIn(text: string): string {
  try {
    const { name } = JSON.parse(text) as { name?: unknown };
    return typeof name === 'string' ? name : '';
  } catch {
    return ''; // a run can be refused for just that: it is listed all the same
  }
}
