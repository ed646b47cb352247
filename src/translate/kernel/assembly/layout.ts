// Fixed addresses in linear memory; kernel.ts on the other side has the same numbers (kernel.test.ts holds them together).

/** Results that do not fit a return value. */
export const RESULT: usize = 1024;
/** i32: flags of the document parsed last, see DOC_*. */
export const RESULT_FLAGS: usize = RESULT;
/** i32: nodes written to the tape. */
export const RESULT_NODES: usize = RESULT + 4;
/** i32: where the output of unescape ended. */
export const RESULT_OUT: usize = RESULT + 8;

/** The document holds a key written with escapes. */
export const DOC_ESCAPED_KEY: i32 = 1;
/** Two keys of one object may be equal, or an object has more keys than are compared here. */
export const DOC_MAYBE_DUPLICATE: i32 = 2;
/** The tape was too short: nodes beyond it were only validated. */
export const DOC_TAPE_FULL: i32 = 4;

/** A string or key holds a surrogate escape without its other half. */
export const DOC_LONE_SURROGATE: i32 = 16;

/** Deepest nesting of a JSON document. */
export const MAX_JSON_DEPTH: i32 = 512;
/** Deepest nesting of arrays and kvlists in an attribute's value that is kept; one that nests deeper counts as unset. */
export const MAX_VALUE_NESTING: i32 = 32;
/** Beyond this nesting (about a hundred protobuf messages) the request is malformed. */
export const MAX_PROTO_NESTING: i32 = 48;
/** Keys per object that are compared for duplicates here. */
export const MAX_COMPARED_KEYS: i32 = 64;

/** Per depth: i32 tape node, i32 kind, i32 member count, i32 unused. */
export const STACK: usize = 0x1000;
/** Per depth: MAX_COMPARED_KEYS hashes, u32. */
export const KEY_HASHES: usize = 0x4000;

/** The span scanned last: i32 fields unless noted. */
export const SPAN: usize = 1280;
export const SPAN_TRACE_OFF: usize = SPAN;
export const SPAN_TRACE_LEN: usize = SPAN + 4;
export const SPAN_ID_OFF: usize = SPAN + 8;
export const SPAN_ID_LEN: usize = SPAN + 12;
export const SPAN_PARENT_OFF: usize = SPAN + 16;
export const SPAN_PARENT_LEN: usize = SPAN + 20;
export const SPAN_NAME_OFF: usize = SPAN + 24;
export const SPAN_NAME_LEN: usize = SPAN + 28;
export const SPAN_KIND: usize = SPAN + 32;
export const SPAN_STATUS_CODE: usize = SPAN + 36;
export const SPAN_STATUS_OFF: usize = SPAN + 40;
export const SPAN_STATUS_LEN: usize = SPAN + 44;
export const SPAN_EVENTS: usize = SPAN + 48;
export const SPAN_LINKS: usize = SPAN + 52;
export const SPAN_INDEXED: usize = SPAN + 56;
export const SPAN_PREFIXED: usize = SPAN + 60;
export const SPAN_MARKS: usize = SPAN + 68;
/** f64 microseconds. */
export const SPAN_START_US: usize = SPAN + 72;
export const SPAN_END_US: usize = SPAN + 80;
/** The event or link scanned last. */
export const EVENT_TIME_US: usize = SPAN + 88;
export const EVENT_NAME_OFF: usize = SPAN + 96;
export const EVENT_NAME_LEN: usize = SPAN + 100;
export const LINK_TRACE_OFF: usize = SPAN + 104;
export const LINK_TRACE_LEN: usize = SPAN + 108;
export const LINK_SPAN_OFF: usize = SPAN + 112;
export const LINK_SPAN_LEN: usize = SPAN + 116;
/** The value read last by readValue: i32 type, then two words. */
export const VALUE_TYPE: usize = SPAN + 120;
export const VALUE_A: usize = SPAN + 124;
export const VALUE_B: usize = SPAN + 128;
/** The member read last by nextMember: i32 key offset, i32 key length. */
export const MEMBER_KEY_OFF: usize = SPAN + 132;
export const MEMBER_KEY_LEN: usize = SPAN + 136;
/** u32: groups of the span's attributes. */
export const SPAN_GROUPS: usize = SPAN + 64;
/** i32: bit 0, the start time is not zero; bit 1, the end time. Of the event: the time. */
export const SPAN_GIVEN: usize = SPAN + 148;
export const EVENT_GIVEN: usize = SPAN + 152;
export const SPAN_TRACE_STATE_OFF: usize = SPAN + 140;
export const SPAN_TRACE_STATE_LEN: usize = SPAN + 144;

/** First address that the owner may use. */
export const OWNER_BASE: usize = 0x40000;
