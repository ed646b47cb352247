/** Protobuf written by hand, right or wrong. */

/** A field with a length, its value as given. */
export function field(number: number, value: Uint8Array | string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([varint((BigInt(number) << 3n) | 2n), varint(BigInt(bytes.length)), bytes]);
}

export function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 0x80n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}

/** A request of one span; further fields of the span behind what it needs. */
export function spanRequest(...more: readonly Uint8Array[]): Buffer {
  const id = crypto.getRandomValues(Buffer.alloc(24));
  const span = Buffer.concat([field(1, id.subarray(0, 16)), field(2, id.subarray(16)), field(5, 'span'), ...more]);
  return field(1, field(2, field(2, span)));
}

/** An attribute of a span; the value as an AnyValue message. */
export function attribute(key: Uint8Array | string, value: Uint8Array): Buffer {
  return field(9, Buffer.concat([field(1, key), field(2, value)]));
}
