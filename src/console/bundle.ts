/**
 * The page's files, made from `app/` as it lies beside this file: bundled, compressed, named by their content. There is no
 * build step: the first request of a process asks for them, which takes about half a second, and memory keeps them
 * (less than a mebibyte). Nothing is written to disk and nothing fetched.
 */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { BuildOptions, Metafile } from 'esbuild';

export interface Asset {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  readonly brotli: Uint8Array;
  readonly gzip: Uint8Array;
  /** With its quotes. */
  readonly etag: string;
}

export interface Bundle {
  /** The one document; every path of the console answers it. */
  readonly page: Asset;
  /** By path, {@link ASSET_PREFIX} included. A name holds a hash of its content, so that it never changes its meaning. */
  readonly assets: ReadonlyMap<string, Asset>;
  /** Whether a source is newer than the bundle. */
  isStale(): Promise<boolean>;
}

export const ASSET_PREFIX = '/console/assets/';
/** Where the bundler believes to write; nothing is written. */
const OUTPUT_FOLDER = '/console/assets';
const APP_FOLDER = fileURLToPath(new URL('./app', import.meta.url));
/** Sizes within 2 % of the highest quality, in a fifth of its time. */
const BROTLI_QUALITY = 9;

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

const OPTIONS = {
  absWorkingDir: APP_FOLDER,
  entryPoints: { main: 'main.tsx', icon: 'icon.svg' },
  bundle: true,
  splitting: true,
  format: 'esm',
  target: 'es2023',
  minify: true,
  write: false,
  metafile: true,
  outdir: OUTPUT_FOLDER,
  entryNames: '[name]-[hash]',
  chunkNames: 'chunk-[hash]',
  assetNames: '[name]-[hash]',
  loader: { '.svg': 'copy' },
  define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'silent',
  // Instead of a tsconfig.json, of which an image may have only a part.
  tsconfigRaw: { compilerOptions: { jsx: 'react-jsx', jsxImportSource: 'preact', target: 'es2023' } },
} as const satisfies BuildOptions;

/** Rejects, with the bundler's words, when a source does not compile or the bundler cannot be started. */
export async function makeBundle(): Promise<Bundle> {
  const madeMs = Date.now();
  const esbuild = await import('esbuild');
  let result;
  try {
    result = await esbuild.build(OPTIONS);
  } finally {
    // Its process would stay.
    await esbuild.stop();
  }
  const assets = new Map<string, Asset>();
  await Promise.all(
    result.outputFiles.map(async ({ path, contents }) => {
      const name = path.slice(path.lastIndexOf('/') + 1);
      const extension = name.slice(name.lastIndexOf('.') + 1);
      assets.set(`${ASSET_PREFIX}${name}`, await makeAsset(CONTENT_TYPES[extension] ?? '', contents));
    }),
  );
  const entry = (name: string, extension: string): string => {
    const path = [...assets.keys()].find(
      (path) => path.startsWith(`${ASSET_PREFIX}${name}-`) && path.endsWith(extension),
    );
    if (path === undefined) throw new Error(`the bundle lacks ${name}${extension}`);
    return path;
  };
  const script = entry('main', '.js');
  const html = pageHtml({
    script,
    style: entry('main', '.css'),
    icon: entry('icon', '.svg'),
    // The browser would learn of these only from the script.
    chunks: importsOf(result.metafile, script),
  });
  const sources = Object.keys(result.metafile.inputs).map((path) => resolve(APP_FOLDER, path));
  return {
    page: await makeAsset('text/html; charset=utf-8', Buffer.from(html)),
    assets,
    isStale: async () => {
      // A source that has gone is a change as well.
      const times = await Promise.all(
        sources.map((path) =>
          stat(path).then(
            ({ mtimeMs }) => mtimeMs,
            () => Infinity,
          ),
        ),
      );
      return times.some((timeMs) => timeMs > madeMs);
    },
  };
}

/** What the script imports at once, as paths. */
function importsOf(metafile: Metafile, script: string): string[] {
  const [, output] = Object.entries(metafile.outputs).find(([path]) => path.endsWith(script)) ?? [];
  return (output?.imports ?? [])
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => `${ASSET_PREFIX}${path.slice(path.lastIndexOf('/') + 1)}`);
}

interface PagePaths {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
  readonly chunks: readonly string[];
}

function pageHtml(paths: PagePaths): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Collector Proxy</title>
<link rel="icon" type="image/svg+xml" href="${paths.icon}">
<link rel="stylesheet" href="${paths.style}">
<script type="module" src="${paths.script}"></script>
${paths.chunks.map((path) => `<link rel="modulepreload" href="${path}">`).join('\n')}
</head>
<body>
<div id="app"></div>
<noscript>The console needs JavaScript. Without it: <a href="/api/traces">/api/traces</a>, <a href="/docs">/docs</a>.</noscript>
</body>
</html>
`;
}

async function makeAsset(contentType: string, bytes: Uint8Array): Promise<Asset> {
  const [brotli, gzipped] = await Promise.all([
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
    promisify(gzip)(bytes, { level: 9 }),
  ]);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  return { contentType, bytes, brotli, gzip: gzipped, etag };
}
