/** Addresses that came in spans: which of them may be shown as a picture or followed as a link. */

/** A picture that is in the address itself, of a kind that can hold no script; null: not to be loaded. */
export function pictureUrl(url: string): string | null {
  return /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+$/.test(url) ? url : null;
}

/** A web address; null: to be shown as text only. */
export function linkUrl(url: string): string | null {
  const parsed = URL.parse(url.trim());
  return parsed !== null && (parsed.protocol === 'https:' || parsed.protocol === 'http:') ? parsed.href : null;
}
