import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { isOwnerGone, processOwner } from '../src/process-owner.ts';

const MODULE = new URL('../src/process-owner.ts', import.meta.url).href;

/** A process that says its name and lives on. */
async function another(): Promise<{ owner: string; end: () => Promise<void> }> {
	const source = `import { processOwner } from '${MODULE}'; console.log(processOwner()); setInterval(() => {}, 1e6);`;
	const child = spawn(process.execPath, ['--input-type=module', '-e', source]);
	const [line] = (await once(child.stdout, 'data')) as [Buffer];
	return {
		owner: line.toString().trim(),
		end: async () => {
			child.kill('SIGKILL');
			await once(child, 'exit');
		},
	};
}

describe.runIf(process.platform === 'linux')('the owner of a lease', () => {
	it('is known to be dead once its process was killed, and not before', async () => {
		const { owner, end } = await another();
		expect(isOwnerGone(owner)).toBe(false);
		await end();
		expect(isOwnerGone(owner)).toBe(true);
	});

	it('is dead where another process has got its id since', () => {
		expect(isOwnerGone(processOwner())).toBe(false);
		expect(isOwnerGone(processOwner().replace(/\d+$/, '1'))).toBe(true);
	});

	it('is in doubt where it belongs to another machine, boot or container', () => {
		expect(isOwnerGone(processOwner().replace(/#\w+/, '#0123456789ab').replace(/:\d+/, ':4194304'))).toBe(
			false,
		);
	});

	it('is in doubt where its name says nothing, as that of an earlier version', () => {
		for (const owner of ['', 'web-1:4194304', 'web-1:4194304#', 'rig'])
			expect([owner, isOwnerGone(owner)]).toEqual([owner, false]);
	});
});
