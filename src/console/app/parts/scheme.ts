/** Colours for canvases, which know nothing of style sheets. */
import { useEffect, useState } from 'preact/hooks';

/** Changes when the system goes dark or light; whoever has drawn on a canvas draws again. */
export function useScheme(): 'dark' | 'light' {
  const [dark] = useState(() => matchMedia('(prefers-color-scheme: dark)'));
  const [isDark, setDark] = useState(dark.matches);
  useEffect(() => {
    const told = (event: MediaQueryListEvent): void => setDark(event.matches);
    dark.addEventListener('change', told);
    return () => dark.removeEventListener('change', told);
  }, [dark]);
  return isDark ? 'dark' : 'light';
}

/** Values of custom properties as they are now, by names of the caller's. */
export function colours<Name extends string>(element: Element, properties: Record<Name, string>): Record<Name, string> {
  const style = getComputedStyle(element);
  const found: Partial<Record<Name, string>> = {};
  for (const name in properties) found[name] = style.getPropertyValue(properties[name]).trim();
  return found as Record<Name, string>;
}
