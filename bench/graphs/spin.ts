/** A node that computes for as long as it is told. */
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ spinMs: Annotation<number> });

export const graph = new StateGraph(State)
  .addNode('spin', ({ spinMs }) => {
    const untilMs = performance.now() + spinMs;
    while (performance.now() < untilMs);
    return {};
  })
  .addEdge(START, 'spin')
  .addEdge('spin', END)
  .compile();
