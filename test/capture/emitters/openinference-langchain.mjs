/** OpenInference's instrumentation of LangChain. */
import { LangChainInstrumentation } from '@arizeai/openinference-instrumentation-langchain';
import * as callbackManager from '@langchain/core/callbacks/manager';
import { capture, provider } from './exporter.mjs';
import { scenarios } from './langchain.mjs';

const instrumentation = new LangChainInstrumentation({ tracerProvider: provider });
instrumentation.manuallyInstrument(callbackManager);
await scenarios(capture);
