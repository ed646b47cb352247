/** A chain, a tool, a retriever and a failing step, for the instrumentations of LangChain. */
import { ChatPromptTemplate } from '@langchain/core/prompts';
import { Document } from '@langchain/core/documents';
import { BaseRetriever } from '@langchain/core/retrievers';
import { RunnableLambda } from '@langchain/core/runnables';
import { StringOutputParser } from '@langchain/core/output_parsers';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import { clientOptions, tools } from './openai.mjs';

class Shelf extends BaseRetriever {
  lc_namespace = ['capture'];
  async _getRelevantDocuments(query) {
    return [
      new Document({ pageContent: `About ${query}`, metadata: { source: 'shelf', page: 1 } }),
      new Document({ pageContent: 'Second', metadata: {}, id: 'd2' }),
    ];
  }
}

const weather = tool(async ({ city }) => `sunny in ${city}`, {
  name: 'get_weather',
  description: 'Weather of a city',
  schema: z.object({ city: z.string() }),
});

export async function scenarios(capture) {
  const model = new ChatOpenAI({
    model: 'gpt-4o',
    apiKey: 'not-a-key',
    maxRetries: 0,
    temperature: 0.5,
    configuration: { baseURL: clientOptions.baseURL, fetch: clientOptions.fetch },
  });
  const prompt = ChatPromptTemplate.fromMessages([
    ['system', 'Be brief.'],
    ['human', 'Weather in {city}?'],
  ]);
  await capture('chain', () =>
    prompt
      .pipe(model)
      .pipe(new StringOutputParser())
      .invoke({ city: 'Paris' }, { tags: ['demo'], metadata: { thread_id: 'thread-1' }, runName: 'forecast' }),
  );
  await capture('tool-call', () => model.bindTools(tools).invoke('Weather in Paris?'));
  await capture('tool', () => weather.invoke({ city: 'Paris' }));
  await capture('retriever', () => new Shelf().invoke('trees'));
  await capture('error', () =>
    RunnableLambda.from(() => {
      throw new TypeError('no such step');
    })
      .withConfig({ runName: 'failing' })
      .invoke('x'),
  );
}
