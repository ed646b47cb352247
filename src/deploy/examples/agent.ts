/** A tool-calling agent: the model asks for the weather, the tool answers, the model reports. */
import { ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { ScriptedModel } from './model.ts';

const SKIES = ['clear', 'cloudy', 'rainy', 'windy'];

const weather = tool(
  ({ city }: { city: string }) => {
    const code = [...city].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
    return `${SKIES[code % SKIES.length] ?? 'clear'}, ${10 + (code % 15)} degrees`;
  },
  {
    name: 'weather',
    description: 'The weather in a city.',
    schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const,
  },
);

const model = new ScriptedModel((conversation) => {
  const last = conversation.at(-1);
  if (last === undefined) return { text: 'Ask me about the weather in a city.' };
  if (ToolMessage.isInstance(last)) return { text: `The weather is ${last.text}.` };
  const city = /\bin\s+([\p{L} ]+)/u.exec(last.text)?.[1]?.trim();
  if (city === undefined) return { text: 'Ask me about the weather in a city.' };
  return { text: 'Let me look that up.', toolCall: { name: 'weather', args: { city } } };
});

export const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addNode('tools', new ToolNode([weather]))
  .addEdge(START, 'model')
  .addConditionalEdges(
    'model',
    ({ messages }) => {
      const last = messages.at(-1) as { tool_calls?: unknown[] } | undefined;
      return (last?.tool_calls?.length ?? 0) > 0 ? 'tools' : END;
    },
    ['tools', END],
  )
  .addEdge('tools', 'model')
  .compile();
