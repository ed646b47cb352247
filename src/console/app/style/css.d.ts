/** The bundler takes style sheets that modules import. */
declare module '*.css';
