/**
 * Counts in WebAssembly: a module goes in, the same module comes out with a counter at the start of every function, branch
 * and loop. The scanners are WebAssembly, so a fuzzer that saw JavaScript only would be blind where it matters most.
 *
 * The counters are in a second memory, imported as `fuzz.counters`; counting leaves the stack as it was, so it can stand
 * between any two instructions. Encodings: WebAssembly core specification 3.0, chapter 5.
 */
const IMPORTS = 2;
const CODE = 10;
const MAGIC_BYTES = 8;
const MEMORY_IMPORT = 2;
const NO_MAXIMUM = 0;
const IN_NUMBERED_MEMORY = 0x40;

export const COUNTER_IMPORT = { module: 'fuzz', name: 'counters' } as const;

/** `place` numbers the counters. The module must import exactly one memory and define none. */
export function countingModule(source: Uint8Array, place: () => number): Uint8Array {
  const input = new Input(source);
  const output = [...source.subarray(0, MAGIC_BYTES)];
  input.at = MAGIC_BYTES;
  while (input.at < source.length) {
    const id = input.byte();
    const section = input.take(input.u32());
    const body = id === IMPORTS ? withCounters(section) : id === CODE ? counted(section, place) : [...section];
    output.push(id, ...leb(body.length));
    for (const byte of body) output.push(byte);
  }
  return Uint8Array.from(output);
}

function withCounters(section: Uint8Array): number[] {
  const input = new Input(section);
  const count = input.u32();
  const text = (value: string): number[] => [value.length, ...Buffer.from(value)];
  const { module, name } = COUNTER_IMPORT;
  return [
    ...leb(count + 1),
    ...section.subarray(input.at),
    ...text(module),
    ...text(name),
    MEMORY_IMPORT,
    NO_MAXIMUM,
    1,
  ];
}

function counted(section: Uint8Array, place: () => number): number[] {
  const input = new Input(section);
  const functionCount = input.u32();
  const output = leb(functionCount);
  for (let n = 0; n < functionCount; n++) {
    const body = countedBody(input.take(input.u32()), place);
    output.push(...leb(body.length));
    for (const byte of body) output.push(byte);
  }
  return output;
}

function countedBody(body: Uint8Array, place: () => number): number[] {
  const input = new Input(body);
  const groupCount = input.u32();
  for (let n = 0; n < groupCount; n++) {
    input.u32();
    input.byte();
  }
  const output = [...body.subarray(0, input.at)];
  output.push(...count(place()));
  while (input.at < body.length) {
    const from = input.at;
    const opcode = input.byte();
    skipImmediates(input, opcode);
    for (let at = from; at < input.at; at++) output.push(body[at] ?? 0);
    if (BRANCHES.has(opcode)) output.push(...count(place()));
  }
  return output;
}

/** loop, if, else, br_if. */
const BRANCHES = new Set([0x03, 0x04, 0x05, 0x0d]);

/** `counters[place]++` on memory 1. */
function count(place: number): number[] {
  const where = [IN_NUMBERED_MEMORY, 1, ...leb(place)];
  const [zero, one] = [
    [0x41, 0],
    [0x41, 1],
  ] as const; // i32.const
  return [...zero, ...zero, 0x2d, ...where, ...one, 0x6a, 0x3a, ...where]; // i32.load8_u, i32.add, i32.store8
}

function skipImmediates(input: Input, opcode: number): void {
  if (opcode >= 0x02 && opcode <= 0x04) return input.leb(); // block, loop, if: the type of the block
  if (opcode === 0x0c || opcode === 0x0d || opcode === 0x10) return input.leb(); // br, br_if, call
  if (opcode === 0x0e) {
    for (let left = input.u32() + 1; left > 0; left--) input.leb(); // br_table
    return;
  }
  if (opcode >= 0x20 && opcode <= 0x24) return input.leb(); // locals and globals
  if (opcode >= 0x28 && opcode <= 0x3e) return input.memoryArgument();
  if (opcode >= 0x3f && opcode <= 0x42) return input.leb(); // memory.size, memory.grow, i32.const, i64.const
  if (opcode === 0x43) return input.skip(4); // f32.const
  if (opcode === 0x44) return input.skip(8); // f64.const
  if (opcode === 0xfc) return skipBulk(input, input.u32());
  if (opcode === 0xfd) return skipVector(input, input.u32());
  const hasNone = opcode <= 0x01 || opcode === 0x05 || opcode === 0x0b || opcode === 0x0f;
  if (hasNone || opcode === 0x1a || opcode === 0x1b || (opcode >= 0x45 && opcode <= 0xc4)) return;
  throw new Error(`unknown instruction 0x${opcode.toString(16)}`);
}

function skipBulk(input: Input, opcode: number): void {
  if (opcode <= 7) return; // saturating truncations
  if (opcode === 10) return input.skip(2); // memory.copy
  if (opcode === 11) return input.skip(1); // memory.fill
  throw new Error(`unknown instruction 0xfc ${opcode}`);
}

function skipVector(input: Input, opcode: number): void {
  if (opcode <= 11 || opcode === 92 || opcode === 93) return input.memoryArgument(); // loads and stores
  if (opcode === 12 || opcode === 13) return input.skip(16); // v128.const, i8x16.shuffle
  if (opcode >= 21 && opcode <= 34) return input.skip(1); // lanes
  if (opcode >= 84 && opcode <= 91) {
    input.memoryArgument(); // loads and stores of lanes
    input.skip(1);
  }
}

class Input {
  at = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  byte(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw new Error('the module ends too early');
    return byte;
  }

  u32(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  leb(): void {
    while (this.byte() >= 0x80);
  }

  memoryArgument(): void {
    this.leb();
    this.leb();
  }

  skip(lengthBytes: number): void {
    this.at += lengthBytes;
  }

  take(lengthBytes: number): Uint8Array {
    const taken = this.#bytes.subarray(this.at, this.at + lengthBytes);
    this.at += lengthBytes;
    return taken;
  }
}

function leb(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest & 0x7f) | 0x80);
  }
}
