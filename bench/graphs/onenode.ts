/** One node that does next to nothing: what is measured is everything around it. */
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ text: Annotation<string>, answer: Annotation<string> });

export const builder = new StateGraph(State)
  .addNode('reply', ({ text }) => ({ answer: `You said: ${text}` }))
  .addEdge(START, 'reply')
  .addEdge('reply', END);

export const graph = builder.compile();
