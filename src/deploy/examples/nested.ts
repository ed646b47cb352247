/** A graph within a graph: the outer one hands its topic to a research graph of two steps. */
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const Research = Annotation.Root({
  topic: Annotation<string>,
  facts: Annotation<string[]>({ reducer: (known, found) => [...known, ...found], default: () => [] }),
});

const research = new StateGraph(Research)
  .addNode('search', ({ topic }) => ({ facts: [`${topic} has ${topic.length} letters`] }))
  .addNode('check', ({ topic }) => ({ facts: [`${topic} backwards is ${[...topic].reverse().join('')}`] }))
  .addEdge(START, 'search')
  .addEdge('search', 'check')
  .addEdge('check', END)
  .compile();

const State = Annotation.Root({
  topic: Annotation<string>,
  facts: Annotation<string[]>,
  report: Annotation<string>,
});

export const graph = new StateGraph(State)
  .addNode('research', research)
  .addNode('conclude', ({ topic, facts }) => ({ report: `About ${topic}: ${facts.join('; ')}.` }))
  .addEdge(START, 'research')
  .addEdge('research', 'conclude')
  .addEdge('conclude', END)
  .compile();
