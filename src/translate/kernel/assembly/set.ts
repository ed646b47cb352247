// The set of keys already written to one JSON object, so that no key is written twice.
import { equals, hash } from './text';

/**
 * Claims a key. `table` has `mask` + 1 entries of 16 bytes: u32 generation, u32 hash, u32 address, u32 length. Returns
 * 1 when the key is new under this generation, 0 when it was claimed before, 2 when the table is three quarters full
 * (`count` keys are in it): the owner then has to provide a larger one.
 */
export function claim(table: usize, mask: u32, generation: u32, count: u32, key: usize, len: usize): i32 {
  const h = hash(key, len);
  let slot = h & mask;
  while (true) {
    const entry = table + (<usize>slot << 4);
    if (load<u32>(entry) != generation) {
      if (count >= mask - (mask >> 2)) return 2;
      store<u32>(entry, generation);
      store<u32>(entry, h, 4);
      store<u32>(entry, <u32>key, 8);
      store<u32>(entry, <u32>len, 12);
      return 1;
    }
    if (load<u32>(entry, 4) == h && <usize>load<u32>(entry, 12) == len && equals(<usize>load<u32>(entry, 8), key, len))
      return 0;
    slot = (slot + 1) & mask;
  }
}
