/**
 * The copy of the graph library that a user's graph was built with. A project brings its own node_modules, and two copies of
 * a library do not recognise each other's classes (`instanceof Send`), so that what we hand to a graph must be made by the
 * graph's copy. Where the project has none of its own, this resolves to ours. Runs in graph workers.
 */
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command, Send } from '@langchain/langgraph';
import type { SerializerProtocol } from '@langchain/langgraph-checkpoint';

export interface GraphLibrary {
  readonly Command: typeof Command;
  readonly Send: typeof Send;
  readonly version: string;
  /** Reads and writes checkpoints with the classes of this copy. */
  readonly serde: SerializerProtocol;
  /** Schema extraction of this copy; absent in old versions. */
  readonly schemas: SchemaFunctions | null;
}

type SchemaFunction = (graph: unknown) => object | undefined;
export interface SchemaFunctions {
  getInputTypeSchema: SchemaFunction;
  getOutputTypeSchema: SchemaFunction;
  getStateTypeSchema: SchemaFunction;
  getUpdateTypeSchema: SchemaFunction;
  getConfigTypeSchema: SchemaFunction;
}

/** Loads the library as the module `file` sees it; the ES module variant, which is what graphs import. */
export async function loadLibrary(file: string): Promise<GraphLibrary> {
  const own = import.meta.filename;
  const main =
    locate(file, '@langchain/langgraph') ?? locate(own, '@langchain/langgraph') ?? fail('@langchain/langgraph');
  const checkpoint =
    locate(main.manifestFile, '@langchain/langgraph-checkpoint') ??
    locate(own, '@langchain/langgraph-checkpoint') ??
    fail('@langchain/langgraph-checkpoint');
  const langgraph = (await load(main, '.')) as { Command: typeof Command; Send: typeof Send };
  const { MemorySaver } = (await load(checkpoint, '.')) as {
    MemorySaver: new () => { serde: SerializerProtocol };
  };
  const schemas = entry(main, './zod/schema') === null ? null : ((await load(main, './zod/schema')) as SchemaFunctions);
  return {
    Command: langgraph.Command,
    Send: langgraph.Send,
    version: main.version,
    // The serializer class itself is not exported; every saver is born with one.
    serde: new MemorySaver().serde,
    schemas,
  };
}

interface Package {
  manifestFile: string;
  version: string;
  exports: Record<string, unknown>;
}

function locate(fromFile: string, name: string): Package | null {
  let manifestFile: string;
  try {
    manifestFile = createRequire(fromFile).resolve(`${name}/package.json`);
  } catch {
    return null; // not installed there: the caller has another place to look, or reports it
  }
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as {
    version?: string;
    exports?: Record<string, unknown>;
  };
  return { manifestFile, version: manifest.version ?? '', exports: manifest.exports ?? {} };
}

/** Path of an export for `import`. `createRequire` alone would answer with the CommonJS twin, whose classes differ. */
function entry(found: Package, subpath: string): string | null {
  let target = found.exports[subpath];
  for (const condition of ['import', 'default'])
    if (typeof target === 'object' && target !== null && condition in target)
      target = (target as Record<string, unknown>)[condition];
  return typeof target === 'string' ? join(dirname(found.manifestFile), target) : null;
}

async function load(found: Package, subpath: string): Promise<unknown> {
  const path = entry(found, subpath) ?? fail(`${found.manifestFile} has no export ${subpath}`);
  return import(pathToFileURL(path).href);
}

function fail(what: string): never {
  throw new Error(`cannot find the graph library: ${what}`);
}
