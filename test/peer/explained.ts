/** Where this server differs on purpose from the development server that LangChain publishes, and why. */
interface Explanation {
  /** Of the scenario; absent: of all. */
  scenario?: RegExp;
  line: RegExp;
  side?: 'there' | 'here';
  reason: string;
}

const EXPLANATIONS: readonly Explanation[] = [
  {
    line: /^[.\d]*\.(error|interrupts|state_updated_at|values|updated_at|description) = /,
    side: 'here',
    reason: 'records have all of their documented fields, also where they are empty',
  },
  {
    line: /\.(checkpoint_id|parent_checkpoint_id) = |\.interrupts = \[\]|^\.interrupts\.0\./,
    side: 'here',
    reason: 'a state also carries its interrupts in one list, and the older spelling of its checkpoints',
  },
  {
    line: /\.(langgraph_(api_url|host|plan|version)|user-agent) = /,
    reason: 'what says where a server ran, and headers of requests, are not kept with a conversation',
  },
  {
    line: /kwargs\.(command|durability|feedback_keys|interrupt_after|interrupt_before|webhook|config\.configurable\.user_id) = /,
    side: 'here',
    reason: 'the arguments of a run are shown with their defaults',
  },
  {
    line: /metadata\.(assistant_id|graph_id) = /,
    reason: 'graph and assistant of a run are in its record; its metadata is what the client said',
  },
  {
    line: /multitask_strategy = "(reject|enqueue)"$/,
    reason: 'runs wait for one another by default, as in production',
  },
  { line: /^content-type: (text\/plain|application\/json)$/, reason: 'JSON is labelled as JSON' },
  {
    line: /^(a body that is no JSON|\.detail = .*)$/,
    reason: 'errors are JSON with a detail; their words are our own',
  },
  {
    scenario: /^stream (checkpoints|debug)$/,
    line: /\.(checkpoint|config|parent_checkpoint|parent_config|tasks)\b/,
    side: 'here',
    reason:
      'the mode checkpoints says where a checkpoint is, what came before it and what is to be done, as production does',
  },
  {
    scenario: /wait that ends in an interrupt/,
    line: /^\.(draft|topic) = /,
    side: 'here',
    reason: 'what waits for a run is answered the state with the interrupt, not the interrupt alone',
  },
  {
    scenario: /fails, waited for/,
    line: /^\.__error__\./,
    reason: 'a failure is told as it is, not as JSON within JSON',
  },
  {
    scenario: /state update/,
    line: /checkpoint_map = null$/,
    side: 'here',
    reason: 'a checkpoint is named with all its fields',
  },
  {
    line: /^content-location: .*\/runs\/ID$/,
    side: 'here',
    reason: 'a join says where its run is, like every other answer about a run',
  },
  { scenario: /with reject/, line: /^status (422|409)$/, reason: 'a conflict is 409' },
  {
    scenario: /copy/,
    line: /\.metadata\.thread_id = /,
    side: 'there',
    reason: 'a copy has the metadata of its original',
  },
  {
    scenario: /subgraphs/,
    line: /^(status (500|200)|\.research\.)/,
    reason: 'the other server cannot say the subgraphs of a graph whose types it does not find',
  },
  { scenario: /delete/, line: /^(status (200|204)|\.0 = "ID"|no body)$/, reason: 'a deletion is answered 204' },
  { scenario: /does not exist/, line: /^status (422|404)$/, reason: 'a thread that is not there is 404' },
  {
    scenario: /malformed/,
    line: /^(status (400|422)|\.error\.|\.success)/,
    reason: 'a request that is not valid is 422 and names the field',
  },
  { line: /^\.config( = \{\}|\.configurable)/, reason: "a thread's config is not that of its last run" },
];

export function explanationOf(scenario: string, line: string, side: 'there' | 'here'): string | null {
  const found = EXPLANATIONS.find(
    (one) => (one.scenario?.test(scenario) ?? true) && (one.side ?? side) === side && one.line.test(line),
  );
  return found?.reason ?? null;
}
