/** Traceloop's instrumentation of LangChain. */
import { LangChainInstrumentation } from '@traceloop/instrumentation-langchain';
import * as callbackManager from '@langchain/core/callbacks/manager';
import { capture, provider } from './exporter.mjs';
import { scenarios } from './langchain.mjs';

const instrumentation = new LangChainInstrumentation({ traceContent: true });
instrumentation.setTracerProvider(provider);
instrumentation.manuallyInstrument({ callbackManagerModule: callbackManager });
await scenarios(capture);
