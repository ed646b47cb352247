/** What is known about a run beside what went in and out. */
import type { RunDetail } from '../../../../backend/api.ts';
import { Json } from '../../parts/json.tsx';
import { asObject } from './conversation.ts';

export function Metadata({ detail }: { readonly detail: RunDetail }) {
  const { metadata, invocation_params: invocation, ...extra } = detail.extra ?? {};
  return (
    <>
      {detail.tags.length > 0 && (
        <section class="part">
          <h3>Tags</h3>
          <p class="tags">
            {detail.tags.map((tag) => (
              <span key={tag} class="badge">
                {tag}
              </span>
            ))}
          </p>
        </section>
      )}
      <Table title="Metadata" values={asObject(metadata)} />
      <Table title="Invocation" values={asObject(invocation)} />
      <Table title="More" values={extra} />
      <Table
        title="Record"
        values={{
          id: detail.id,
          trace_id: detail.trace_id,
          parent_run_id: detail.parent_run_id,
          project: detail.project,
          start_time: detail.start_time,
          end_time: detail.end_time,
          dotted_order: detail.dotted_order,
        }}
      />
      <Table title="Events" values={detail.events === null ? null : Object.fromEntries(detail.events.entries())} />
      <Table title="Feedback" values={Object.fromEntries(detail.feedback.entries())} />
    </>
  );
}

function Table({
  title,
  values,
}: {
  readonly title: string;
  readonly values: Readonly<Record<string, unknown>> | null;
}) {
  const entries = Object.entries(values ?? {});
  if (entries.length === 0) return null;
  return (
    <section class="part">
      <h3>{title}</h3>
      <table class="pairs">
        <tbody>
          {entries.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                {typeof value === 'string' ? (
                  <span class="text mono">{value}</span>
                ) : (
                  <Json value={value} openDepth={1} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
