/** The gateway under test, in front of the fixture server. `node test/conformance/gateway-server.ts`; prints its URL. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { memory } from '../../src/backend/memory/index.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import { listen } from '../../src/server/index.ts';

const fixture = spawn(process.execPath, [fileURLToPath(new URL('./server.ts', import.meta.url)), '0'], {
	stdio: ['ignore', 'pipe', 'inherit'],
});
process.once('exit', () => fixture.kill('SIGKILL'));
const url = await new Promise<string>((resolve) =>
	createInterface({ input: fixture.stdout }).once('line', resolve),
);

const gateway = new Gateway({
	backend: memory(),
	upstreams: [
		{
			name: 'fixture',
			target: { kind: 'http', url, headers: {} },
			prefix: '',
			maxConcurrentCalls: 64,
			startTimeoutMs: 10_000,
			tools: {},
			folds: [],
			maxResultBytes: 10_000_000,
		},
	],
	catalogue: { read: async () => undefined, write: async () => {} },
	budgets: () => undefined,
	...(process.env['VERBOSE'] && { log: { info: console.error, warn: console.error, error: console.error } }),
});
const listening = await listen(gateway.server, { port: 0, bus: gateway.bus });
console.log(listening.url);

for (const signal of ['SIGINT', 'SIGTERM'] as const)
	process.once(signal, () => {
		fixture.kill();
		void listening.close(0).then(() => gateway.close());
	});
