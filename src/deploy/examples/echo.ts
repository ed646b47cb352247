/** The smallest graph: answers with what it was told. */
import { AIMessage } from '@langchain/core/messages';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';

export const graph = new StateGraph(MessagesAnnotation)
  .addNode('echo', ({ messages }) => {
    const last = messages.at(-1);
    return { messages: [new AIMessage(`You said: ${last === undefined ? '' : last.text}`)] };
  })
  .addEdge(START, 'echo')
  .addEdge('echo', END)
  .compile();
