import { sqlite } from '../../src/backend/sqlite/index.ts';
import { ENDED, newDetails, revised, TEST_LIMITS } from '../../src/testing/records.ts';

/** A process that creates and completes tasks in a file, and prints the id of each when it is stored. */
const [file = '', count = '0', principal = 'local'] = process.argv.slice(2);
const backend = sqlite(file);
await backend.open();
for (let n = 0; n < Number(count); n++) {
	const details = newDetails({ principal });
	const progress = revised(details.record, { progress: { progress: n } });
	await backend.store.create(details, TEST_LIMITS);
	await backend.store.replace(progress, 'normal');
	await backend.store.replace(revised(progress, ENDED), 'full');
	process.stdout.write(`${details.record.taskId}\n`);
}
await backend.close();
