/**
 * The published validation of checkpointers, run by its own runner: see ../flow/deploy-checkpointer.test.ts, which starts it once for
 * each engine.
 */
import { validate } from '@langchain/langgraph-checkpoint-validation';
import { openState } from '../../src/deploy/checkpoint/open.ts';
import { openCheckpointSaver } from '../../src/deploy/checkpoint/saver.ts';
import { migrate } from '../../src/deploy/store/migrations.ts';
import type { StateLocation } from '../../src/deploy/store/location.ts';

const location = JSON.parse(process.env['STATE_LOCATION'] ?? '') as StateLocation;

validate({
  checkpointerName: 'deployment',
  beforeAll: async () => {
    const state = await openState(location);
    await migrate(state.db, state.engine, 'state');
    await state.db.destroy();
  },
  createCheckpointer: () => openCheckpointSaver(location),
  destroyCheckpointer: async (saver) => {
    await saver.close();
    // Lists without a thread want to find their own checkpoints only.
    const state = await openState(location);
    await state.db.deleteFrom('deploy_write').execute();
    await state.db.deleteFrom('deploy_checkpoint').execute();
    await state.db.destroy();
  },
});
