// Lint rules. Run by `npm run lint`, which `npm run check` calls; a dotfile like every other tool setting.
import tseslint from 'typescript-eslint';

/** Folder of src/ → folders of src/ that it may import from, itself always included. The tree is the pipeline. */
const mayImport = {
  core: [],
  ring: ['core'],
  translate: ['core'],
  decode: ['ring', 'translate', 'core'],
  assemble: ['ring', 'core'],
  upload: ['ring', 'core'],
  accept: ['core'],
  journal: ['core'],
  deploy: ['core'],
  backend: ['core'],
  observe: ['core'],
  console: ['core'],
};
/** Folders whose interfaces, and only those, another folder may name: the console reads what these two serve. */
const mayName = { console: ['backend', 'deploy'] };

/** One home per dependency: package → the only folders of src/ that import it. */
const homes = {
  'uWebSockets.js': ['accept', 'backend'],
  piscina: ['decode'],
  pino: ['observe'],
  esbuild: ['console'],
  preact: ['console'],
};

const folders = Object.keys(mayImport);

function dependencyRule(folder) {
  const foreign = folders.filter((other) => other !== folder && !mayImport[folder].includes(other));
  const named = mayName[folder] ?? [];
  const unnamed = foreign.filter((other) => !named.includes(other));
  return {
    files: [`src/${folder}/**/*.ts`, `src/${folder}/**/*.tsx`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: Object.entries(homes)
            .filter(([, owners]) => !owners.includes(folder))
            .map(([name, owners]) => ({ name, message: `${name} lives in src/${owners.join(' and src/')} alone.` })),
          patterns: [
            ...[
              { others: unnamed, allowTypeImports: false },
              { others: named, allowTypeImports: true },
            ]
              .filter(({ others }) => others.length > 0)
              .map(({ others, allowTypeImports }) => ({
                regex: `^(\\.\\./)+(${others.join('|')})/`,
                allowTypeImports,
                message: `src/${folder} may import ${['itself', ...mayImport[folder]].join(', ')} only; what it hands on to is given to it at construction.`,
              })),
            {
              regex:
                '^(\\.\\./)+((main|service|shippers|spool|spoolcommand|memory|embedded|banner|cli|config|variables)\\.ts$|workers/|bench/|test/)',
              message: 'Nothing imports the composition root; stages receive settings.',
            },
          ],
        },
      ],
    },
  };
}

const noModuleState = {
  selector: ':matches(Program, Program > ExportNamedDeclaration) > VariableDeclaration[kind="let"]',
  message: 'No mutable module state: give it an owner.',
};
const noEnvironment = {
  selector: 'MemberExpression[object.name="process"][property.name="env"]',
  message: 'The environment is read in src/config.ts alone.',
};
const noExit = {
  selector: 'CallExpression[callee.object.name="process"][callee.property.name="exit"]',
  message: 'src/main.ts is the only place that ends the process.',
};

export default tseslint.config(
  { ignores: ['node_modules/**', 'coverage/**', 'src/translate/kernel/assembly/**', 'test/fixtures/**'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'it', 'describe', 'suite'] },
          ],
        },
      ],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true, allowDefaultCaseForExhaustiveSwitch: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // An async method without await is how an interface with a synchronous implementation looks.
      '@typescript-eslint/require-await': 'off',
      'no-empty': ['error', { allowEmptyCatch: false }],
      'no-control-regex': 'off',
      eqeqeq: 'error',
      'prefer-const': 'error',
      'no-console': 'error',
      'no-restricted-syntax': ['error', noModuleState, noEnvironment, noExit],
    },
  },
  ...folders.map(dependencyRule),
  { files: ['src/config.ts'], rules: { 'no-restricted-syntax': ['error', noModuleState, noExit] } },
  { files: ['src/main.ts'], rules: { 'no-restricted-syntax': ['error', noModuleState, noEnvironment] } },
  {
    // Programs a person runs, and tests, may print, read the environment, and take JSON as it comes.
    files: ['bench/**/*.ts', 'test/**/*.ts'],
    rules: {
      'no-console': 'off',
      'no-restricted-syntax': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
);
