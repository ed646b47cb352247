// The byte work of the translator that JavaScript engines do slowly: finding the few bytes of a string that need a
// look, validating JSON, walking protobuf. Compiled with AssemblyScript to ../kernel.wasm (npm run kernel:build);
// kernel.wasm is committed and a test holds it to these sources. It keeps no state between calls but the addresses
// that its owner configures, allocates nothing, and trusts its owner for address ranges only.
export {
  copy,
  decimal,
  equals,
  escape,
  hash,
  hexBytes,
  hexText,
  integer,
  sanitize,
  stringEnd,
  unescape,
  wellFormed,
} from './text';
export { parse, skip, skipSpace } from './json';
export {
  checkAttributes,
  configureKeys,
  configureLists,
  lookupKey,
  nextElement,
  nextMember,
  readField,
  scanEvent,
  scanLink,
  scanSpan,
} from './proto';
export { claim } from './set';
