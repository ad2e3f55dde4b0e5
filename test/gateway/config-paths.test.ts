/** Paths in a configuration, when the gateway is started somewhere else. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { upstreamsOf } from '../../src/gateway/config.ts';
import { readConfig } from '../../src/gateway/config-file.ts';
import { Cli } from '../cli/harness.ts';
import { Wire } from '../field/wire.ts';
import { scratch } from './rig.ts';

it('means the folder of a command from the folder of the file', () => {
	const text = 'upstreams: { a: { command: node, cwd: tools }, b: { command: node, cwd: /srv } }';
	const cwds = upstreamsOf(readConfig(text, 'gateway.yaml', {}), {}, '/etc/gateway').map(
		({ target }) => target.kind === 'command' && target.cwd,
	);
	expect(cwds).toEqual(['/etc/gateway/tools', '/srv']);
});

it('runs a command in the folder of the file where none is named', async () => {
	const folder = scratch();
	mkdirSync(join(folder, 'servers'));
	const child = join(import.meta.dirname, 'fixtures/child.ts');
	writeFileSync(
		join(folder, 'servers/here.ts'),
		`process.argv[2] = 'log'; await import(${JSON.stringify(child)});`,
	);
	writeFileSync(
		join(folder, 'gateway.yaml'),
		`listen: { port: 0 }\nupstreams: { here: { command: [${JSON.stringify(process.execPath)}, servers/here.ts] } }\n`,
	);
	const cli = new Cli(['gateway', '--config', join(folder, 'gateway.yaml'), '--json'], { cwd: tmpdir() });
	const [, url = ''] = await cli.said(/"url":"([^"]+)"/);
	const wire = new Wire(url);
	expect(JSON.stringify((await wire.request('tools/list')).message)).toContain('"echo"');
	wire.close();
	cli.signal('SIGTERM');
	expect(await cli.ended()).toBe(0);
});
