import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PageServer, resultText, root } from './page-server.ts';

let page: PageServer;
beforeEach(() => {
	page = new PageServer();
});
afterEach(() => page.close());

test('the program in the README runs as it stands there, with the command below it', async () => {
	const readme = readFileSync(join(root, 'README.md'), 'utf8');
	page.write('server.ts', /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? '');
	const wire = await page.serve();
	const { result } = await wire.request('tools/call', {
		name: 'publish_report',
		arguments: { month: 'July' },
	});
	expect(result).toMatchObject({ resultType: 'task', status: 'input_required' });
	const taskId = result?.['taskId'] as string;
	await wire.request('tasks/update', {
		taskId,
		inputResponses: { publish: { action: 'accept', content: {} } },
	});
	expect(await resultText(wire, taskId)).toBe('Published');
});
