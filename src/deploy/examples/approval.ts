/** A human in the loop: the draft goes out only after somebody has approved it. */
import { Annotation, END, interrupt, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({
  topic: Annotation<string>,
  draft: Annotation<string>,
  decision: Annotation<'approved' | 'rejected'>,
  result: Annotation<string>,
});

export const graph = new StateGraph(State)
  .addNode('write', ({ topic }) => ({ draft: `A few words about ${topic}.` }))
  .addNode('review', ({ draft }) => {
    const answer: unknown = interrupt({ question: 'May this be published?', draft });
    return { decision: answer === true || answer === 'yes' ? 'approved' : 'rejected' };
  })
  .addNode('publish', ({ decision, draft }) => ({
    result: decision === 'approved' ? `Published: ${draft}` : 'Not published.',
  }))
  .addEdge(START, 'write')
  .addEdge('write', 'review')
  .addEdge('review', 'publish')
  .addEdge('publish', END)
  .compile();
