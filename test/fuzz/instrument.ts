/**
 * Makes the code of this thread count where it comes along: every TypeScript module of `src/` that is loaded from here on,
 * and every WebAssembly module that is compiled. Types are stripped on the way, as Node would.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { COUNTERS, type Coverage } from './coverage.ts';
import { COUNTER_IMPORT, countingModule } from './wasmcoverage.ts';

const SOURCES = new URL('../../src/', import.meta.url).href;

/** String literals of the instrumented code are pushed to `words`: what it compares with is worth trying. */
export function instrument(coverage: Coverage, words: Set<string>): void {
  (globalThis as Record<symbol, unknown>)[COUNTERS] = coverage.counters;
  registerHooks({
    load: (url, context, nextLoad) => {
      if (!url.startsWith(SOURCES) || !url.endsWith('.ts')) return nextLoad(url, context);
      const source = countingSource(readFileSync(fileURLToPath(url), 'utf8'), () => coverage.place(), words);
      return { format: 'module', source, shortCircuit: true };
    },
  });
  instrumentWasm(coverage);
}

function instrumentWasm(coverage: Coverage): void {
  const { Module, Instance } = WebAssembly;
  const wasm = WebAssembly as { Module: unknown; Instance: unknown };
  wasm.Module = class extends Module {
    constructor(bytes: Uint8Array<ArrayBuffer>) {
      const counting = countingModule(new Uint8Array(bytes), () => coverage.place());
      super(new Uint8Array(counting));
    }
  };
  wasm.Instance = class extends Instance {
    constructor(module: WebAssembly.Module, imports: { env: { memory: WebAssembly.Memory } }) {
      const { module: from, name } = COUNTER_IMPORT;
      super(module, Object.assign(imports, { [from]: { [name]: coverage.memory } }));
    }
  };
}

/** JavaScript of a module that counts where functions, branches, loops and cases begin. */
export function countingSource(source: string, place: () => number, words: Set<string>): string {
  const { factory } = ts;
  const counters = factory.createUniqueName('counters');
  const count = (): ts.Expression =>
    factory.createPostfixIncrement(factory.createElementAccessExpression(counters, place()));
  const counted = (expression: ts.Expression): ts.Expression =>
    factory.createParenthesizedExpression(factory.createComma(count(), expression));
  const statement = (): ts.Statement => factory.createExpressionStatement(count());
  const block = (body: ts.Statement | undefined): ts.Block =>
    factory.createBlock([statement(), ...(body === undefined ? [] : [body])], true);

  const transform: ts.TransformerFactory<ts.SourceFile> = (context) => {
    const bodies = new Set<ts.Node>();
    const visit = (node: ts.Node): ts.Node => {
      if (ts.isStringLiteral(node)) words.add(node.text);
      if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) bodies.add(node.body);
      const done = ts.visitEachChild(node, visit, context);
      if (ts.isBlock(done) && bodies.has(node)) {
        return factory.updateBlock(done, [statement(), ...done.statements]);
      }
      if (ts.isArrowFunction(done) && !ts.isBlock(done.body)) {
        const { modifiers, typeParameters, parameters, type, equalsGreaterThanToken } = done;
        const body = counted(done.body);
        return factory.updateArrowFunction(
          done,
          modifiers,
          typeParameters,
          parameters,
          type,
          equalsGreaterThanToken,
          body,
        );
      }
      if (ts.isIfStatement(done)) {
        const { expression, thenStatement, elseStatement } = done;
        return factory.updateIfStatement(done, expression, block(thenStatement), block(elseStatement));
      }
      if (ts.isConditionalExpression(done)) {
        const { condition, questionToken, whenTrue, colonToken, whenFalse } = done;
        return factory.updateConditionalExpression(
          done,
          condition,
          questionToken,
          counted(whenTrue),
          colonToken,
          counted(whenFalse),
        );
      }
      if (ts.isBinaryExpression(done) && SHORT_CIRCUITS.has(done.operatorToken.kind)) {
        return factory.updateBinaryExpression(done, done.left, done.operatorToken, counted(done.right));
      }
      if (ts.isForStatement(done)) {
        const { initializer, condition, incrementor, statement: body } = done;
        return factory.updateForStatement(done, initializer, condition, incrementor, block(body));
      }
      if (ts.isForOfStatement(done)) {
        const { awaitModifier, initializer, expression, statement: body } = done;
        return factory.updateForOfStatement(done, awaitModifier, initializer, expression, block(body));
      }
      if (ts.isWhileStatement(done)) return factory.updateWhileStatement(done, done.expression, block(done.statement));
      if (ts.isCaseClause(done))
        return factory.updateCaseClause(done, done.expression, [statement(), ...done.statements]);
      if (ts.isDefaultClause(done)) return factory.updateDefaultClause(done, [statement(), ...done.statements]);
      return done;
    };
    return (file) => {
      const body = ts.visitEachChild(file, visit, context);
      const key = factory.createCallExpression(
        factory.createPropertyAccessExpression(factory.createIdentifier('Symbol'), 'for'),
        undefined,
        [factory.createStringLiteral(Symbol.keyFor(COUNTERS) ?? '')],
      );
      const found = factory.createElementAccessExpression(factory.createIdentifier('globalThis'), key);
      const declaration = factory.createVariableDeclaration(counters, undefined, undefined, found);
      const list = factory.createVariableDeclarationList([declaration], ts.NodeFlags.Const);
      return factory.updateSourceFile(body, [factory.createVariableStatement(undefined, list), ...body.statements]);
    };
  };
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      useDefineForClassFields: true,
      inlineSourceMap: true,
    },
    transformers: { before: [transform] },
  });
  return outputText;
}

const SHORT_CIRCUITS = new Set<ts.SyntaxKind>([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
]);
