/** Writes the `multipart/form-data` body of an upload: the other side of multipart.ts, for the client and for tests. */

export interface FormPart {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** The boundary must not occur in any of the parts, after a line break and two dashes; that is the caller's to know. */
export function writeMultipart(parts: readonly FormPart[], boundary: string): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (const { name, mediaType, bytes } of parts) {
    const quoted = name.replaceAll(/["\\]/g, '\\$&');
    pieces.push(
      Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="${quoted}"\r\nContent-Type: ${mediaType}\r\n` +
          `Content-Length: ${bytes.byteLength}\r\n\r\n`,
      ),
      bytes,
      Buffer.from('\r\n'),
    );
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`));
  return Buffer.concat(pieces);
}

/** A part with a JSON value. */
export function jsonPart(name: string, value: unknown): FormPart {
  return { name, mediaType: 'application/json', bytes: Buffer.from(JSON.stringify(value)) };
}
