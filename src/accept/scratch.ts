/**
 * Buffers in which bodies that arrive in pieces are gathered, kept for reuse: at thousands of requests a second, fresh
 * ones would keep the garbage collector busy. Holds at most `shelfCount`; beyond that buffers are made and forgotten.
 */
export interface ScratchShelf {
  borrow(): Uint8Array<ArrayBuffer>;
  giveBack(buffer: Uint8Array<ArrayBuffer>): void;
}

export function createScratchShelf(bufferBytes: number, shelfCount: number): ScratchShelf {
  const shelf: Uint8Array<ArrayBuffer>[] = [];
  return {
    borrow: () => shelf.pop() ?? new Uint8Array(bufferBytes),
    giveBack: (buffer) => {
      if (shelf.length < shelfCount) shelf.push(buffer);
    },
  };
}
