/** The programs check themselves; what they print is what the README promises. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);

it.each([
	['openai.ts', /The agent was killed in turn 3.*\n +resumed: task_\w+\n(.*\n)*Model turns: 4: .*\nok\n$/],
	[
		'ai-sdk.ts',
		/^Waiting: 2 model turns, \d+ requests about the task\.\nIn the background: 4 model turns, .*\nok\n$/,
	],
])('%s ends well', async (program, printed) => {
	const { stdout } = await run(process.execPath, [join(import.meta.dirname, '..', program)]);
	expect(stdout).toMatch(printed);
});
