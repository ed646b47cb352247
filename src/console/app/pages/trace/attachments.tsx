/** Files that came with a run: pictures are shown, everything else can be saved. */
import { useEffect, useState } from 'preact/hooks';
import type { RunDetail } from '../../../../backend/api.ts';
import { messageOf } from '../../api/load.ts';
import { bytes } from '../../parts/format.ts';
import { pictureUrl } from '../../parts/safeurl.ts';
import { useServices } from '../../services.ts';

const PICTURE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const MAX_PICTURE_BYTES = 8 * 2 ** 20;

type Attachment = RunDetail['attachments'][number];

export function Attachments({ run }: { readonly run: RunDetail }) {
  return (
    <ul class="attachments">
      {run.attachments.map((attachment) => (
        <Item key={attachment.name} run={run} attachment={attachment} />
      ))}
    </ul>
  );
}

function Item({ run, attachment }: { readonly run: RunDetail; readonly attachment: Attachment }) {
  const { api, toasts } = useServices();
  const path = `/api/runs/${run.id}/attachments/${encodeURIComponent(attachment.name)}`;
  const isPicture = PICTURE_TYPES.has(attachment.media_type) && attachment.size_bytes <= MAX_PICTURE_BYTES;
  const [picture, setPicture] = useState<string | null>(null);
  useEffect(() => {
    if (!isPicture) return;
    const aborter = new AbortController();
    api
      .blob(path, { query: { tenant: run.tenant }, signal: aborter.signal })
      .then(dataUrl)
      .then(setPicture)
      .catch((error: unknown) => {
        if (!aborter.signal.aborted) toasts.error(messageOf(error));
      });
    return () => aborter.abort();
  }, [api, toasts, path, isPicture, run.tenant]);
  const save = async (): Promise<void> => {
    try {
      const url = URL.createObjectURL(await api.blob(path, { query: { tenant: run.tenant } }));
      const link = document.createElement('a');
      link.href = url;
      link.download = attachment.name;
      link.click();
      URL.revokeObjectURL(url);
    } catch (error) {
      toasts.error(messageOf(error));
    }
  };
  return (
    <li>
      <button type="button" class="small" onClick={() => void save()}>
        Save
      </button>{' '}
      <code>{attachment.name}</code>{' '}
      <span class="quiet">
        {attachment.media_type}, {bytes(attachment.size_bytes)}
      </span>
      {picture !== null && <img class="picture" src={picture} alt={attachment.name} />}
    </li>
  );
}

async function dataUrl(blob: Blob): Promise<string | null> {
  const reader = new FileReader();
  await new Promise((resolve, reject) => {
    reader.onload = resolve;
    reader.onerror = () => reject(new Error('the attachment could not be read'));
    reader.readAsDataURL(blob);
  });
  return typeof reader.result === 'string' ? pictureUrl(reader.result) : null;
}
