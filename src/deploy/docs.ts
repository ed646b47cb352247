/** The description of the API as one page: no scripts, nothing fetched, readable offline. */
import type { OpenApiDocument } from './openapi.ts';

interface Described {
  tags: string[];
  summary: string;
  parameters: { name: string; in: string }[];
  requestBody?: { content: { 'application/json': { schema: object } } };
  responses: Record<string, { description: string }>;
}

const STYLE = `
  :root { color-scheme: light dark }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  h2 { margin-top: 2.5rem } details { border-top: 1px solid #8884; padding: .4rem 0 } summary { cursor: pointer }
  code, pre { font: 13px/1.45 ui-monospace, monospace } pre { overflow: auto; background: #8881; padding: .8rem }
  b { display: inline-block; min-width: 4.2rem; font-weight: 600 } small { opacity: .75 } nav a { margin-right: 1rem }
`;

export function docsPage(document: OpenApiDocument): string {
  const byTag = new Map<string, string[]>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const described = operation as Described;
      const tag = described.tags[0] ?? '';
      byTag.set(tag, [...(byTag.get(tag) ?? []), operationHtml(method, path, described)]);
    }
  }
  const sections = [...byTag].map(
    ([tag, operations]) => `<h2 id="${anchor(tag)}">${escaped(tag)}</h2>${operations.join('')}`,
  );
  const links = [...byTag.keys()].map((tag) => `<a href="#${anchor(tag)}">${escaped(tag)}</a>`);
  const { title, description, version } = document.info;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title><style>${STYLE}</style></head><body>
<h1>${escaped(title)} <small>${escaped(version)}</small></h1><p>${escaped(description)}</p>
<p>With API keys configured, send one as <code>x-api-key</code> or <code>Authorization: Bearer</code>. Errors are
<code>{"detail": "…"}</code>. The same for tools: <a href="openapi.json">openapi.json</a>.</p>
<nav>${links.join('')}</nav>${sections.join('')}</body></html>`;
}

function operationHtml(method: string, path: string, operation: Described): string {
  const query = operation.parameters.filter((parameter) => parameter.in === 'query');
  const schema = operation.requestBody?.content['application/json'].schema;
  const [status, success] = Object.entries(operation.responses).find(([code]) => code.startsWith('2')) ?? ['', null];
  const parts = [
    query.length === 0 ? '' : `<p>Query: ${query.map(({ name }) => `<code>${escaped(name)}</code>`).join(', ')}</p>`,
    `<p>Answers ${escaped(status)}: ${escaped(success?.description ?? '')}.</p>`,
    schema === undefined ? '' : `<p>Body:</p><pre>${escaped(JSON.stringify(schema, null, 2))}</pre>`,
  ];
  const head = `<b>${method.toUpperCase()}</b><code>${escaped(path)}</code> <small>${escaped(operation.summary)}</small>`;
  return `<details><summary>${head}</summary>${parts.join('')}</details>`;
}

function anchor(tag: string): string {
  return tag.toLowerCase().replaceAll(/\W+/g, '-');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
