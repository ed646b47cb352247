/** Long lists: only the rows in view are in the document. All rows of a list are equally high. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualItem,
} from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

export interface Rows {
  /** For the element that scrolls. */
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly items: readonly VirtualItem[];
  readonly totalPx: number;
  /** Brings a row into view, if it is not. */
  show(index: number): void;
  /** Keeps what is in view where it is, after rows were put in above it. */
  shift(rowCount: number): void;
}

const OVERSCAN_COUNT = 12;

export function useRows(count: number, rowPx: number, headPx = 0): Rows {
  const scroller = useRef<HTMLDivElement>(null);
  const [, setRound] = useState(0);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: OVERSCAN_COUNT,
    scrollMargin: 0,
    paddingStart: 0,
    scrollPaddingStart: headPx,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => setRound((before) => before + 1),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLDivElement, Element>(options));
  virtualizer.setOptions(options);
  useEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  return {
    scroller,
    items: virtualizer.getVirtualItems(),
    totalPx: virtualizer.getTotalSize(),
    show: (index) => virtualizer.scrollToIndex(index, { align: 'auto' }),
    shift: (rowCount) => {
      if (scroller.current !== null) scroller.current.scrollTop += rowCount * rowPx;
    },
  };
}
