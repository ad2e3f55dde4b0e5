/**
 * `node bench/gateway.ts --peers FOLDER`: `holdfast gateway` beside `mcp-proxy` and `supergateway` in one run, each
 * over Streamable HTTP in front of the same server on stdio. Run by hand: the peers are installed by
 * `npm install --prefix FOLDER mcp-proxy@6.7.19 supergateway@4.0.0`. Needs `npm run build`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { median, percentile } from './figures.ts';

const { values } = parseArgs({
	options: { peers: { type: 'string' }, rounds: { type: 'string', default: '10' } },
});
const { peers } = values;
const ROUNDS = Number(values.rounds);
const CALLS_A_ROUND = 100;
const CONCURRENT = 16;
const CALLS_FOR_MEMORY = 10_000;

const UPSTREAM = join(import.meta.dirname, 'gateway-upstream.ts');
const HOLDFAST = join(import.meta.dirname, '../dist/cli/holdfast.js');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-gateway-'));
const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENT });

type Call = () => Promise<void>;

interface Contender {
	readonly name: string;
	readonly call: Call;
	readonly pid: number;
}

async function freePort(): Promise<number> {
	const probe = createServer();
	await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
	const address = probe.address();
	await new Promise((resolve) => probe.close(resolve));
	return typeof address === 'object' && address ? address.port : 0;
}

/** Posts one message; resolves with the body and the session. */
function post(
	url: string,
	body: object,
	headers: Readonly<Record<string, string>>,
): Promise<{ text: string; session: string | undefined }> {
	const bytes = JSON.stringify(body);
	return new Promise((resolve, reject) => {
		const outgoing = request(
			url,
			{
				method: 'POST',
				agent,
				headers: {
					'content-type': 'application/json',
					accept: 'application/json, text/event-stream',
					'content-length': Buffer.byteLength(bytes),
					...headers,
				},
			},
			(incoming) => {
				let text = '';
				incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
				incoming.on('end', () => {
					const session = incoming.headers['mcp-session-id'];
					if ((incoming.statusCode ?? 500) >= 400) reject(new Error(`${incoming.statusCode} ${text}`));
					else resolve({ text, session: typeof session === 'string' ? session : undefined });
				});
			},
		);
		outgoing.on('error', reject);
		outgoing.end(bytes);
	});
}

const PARAMS = { name: 'echo', arguments: { words: 'x'.repeat(200) } };
let lastId = 1;

/** A client with a session of 2025-06-18, which all contenders speak. */
async function sessionCall(url: string): Promise<Call> {
	const version = '2025-06-18';
	const hello = {
		...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
		params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
	};
	const { session } = await post(url, hello, {});
	const headers = {
		'mcp-protocol-version': version,
		...(session !== undefined && { 'mcp-session-id': session }),
	};
	await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
	return async () => {
		const { text } = await post(
			url,
			{ jsonrpc: '2.0', id: ++lastId, method: 'tools/call', params: PARAMS },
			headers,
		);
		if (!text.includes('xxxx')) throw new Error(`no echo: ${text}`);
	};
}

/** A client of 2026-07-28. */
function statelessCall(url: string): Call {
	const _meta = {
		'io.modelcontextprotocol/protocolVersion': '2026-07-28',
		'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
		'io.modelcontextprotocol/clientCapabilities': {},
	};
	const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'echo' };
	return async () => {
		const body = { jsonrpc: '2.0', id: ++lastId, method: 'tools/call', params: { ...PARAMS, _meta } };
		const { text } = await post(url, body, headers);
		if (!text.includes('xxxx')) throw new Error(`no echo: ${text}`);
	};
}

/** The server itself, without anything in front. */
async function directCall(): Promise<Call> {
	const transport = new StdioClientTransport({
		command: process.execPath,
		args: [UPSTREAM],
		stderr: 'ignore',
	});
	const waiting = new Map<unknown, () => void>();
	transport.onmessage = (message) => {
		if ('id' in message) waiting.get(message.id)?.();
	};
	await transport.start();
	const ask = (method: string, params: object): Promise<void> =>
		new Promise((resolve, reject) => {
			const id = ++lastId;
			waiting.set(id, () => {
				waiting.delete(id);
				resolve();
			});
			transport.send({ jsonrpc: '2.0', id, method, params: { ...params } }).catch(reject);
		});
	await ask('initialize', {
		...{ protocolVersion: '2025-06-18', capabilities: {} },
		clientInfo: { name: 'bench', version: '1' },
	});
	await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
	process.once('exit', () => void transport.close());
	return () => ask('tools/call', PARAMS);
}

const children: ChildProcess[] = [];

function start(script: string, args: readonly string[]): ChildProcess {
	const child = spawn(process.execPath, [script, ...args], { stdio: 'ignore', cwd: folder });
	children.push(child);
	return child;
}

async function ready<T>(connect: () => Promise<T>): Promise<T> {
	for (let attempt = 0; ; attempt++)
		try {
			return await connect();
		} catch (error) {
			if (attempt === 200) throw error;
			await pause(100);
		}
}

async function contenders(): Promise<Contender[]> {
	const all: Contender[] = [];
	const port = await freePort();
	const config = join(folder, 'gateway.yaml');
	writeFileSync(
		config,
		JSON.stringify({
			listen: { port },
			upstreams: { behind: { command: [process.execPath, UPSTREAM] } },
		}),
	);
	const ours = start(HOLDFAST, ['gateway', '--config', config, '--quiet']);
	const url = `http://127.0.0.1:${port}/mcp`;
	const call = await ready(() => sessionCall(url));
	all.push({ name: 'holdfast gateway', call, pid: ours.pid ?? 0 });
	all.push({ name: 'holdfast gateway, 2026-07-28', call: statelessCall(url), pid: ours.pid ?? 0 });
	if (peers === undefined) return all;
	const proxyPort = await freePort();
	const proxy = start(join(peers, 'node_modules', ...binOf('mcp-proxy')), [
		...['--port', String(proxyPort), '--host', '127.0.0.1', '--server', 'stream'],
		...['--', process.execPath, UPSTREAM],
	]);
	const proxyUrl = `http://127.0.0.1:${proxyPort}/mcp`;
	all.push({ name: 'mcp-proxy', call: await ready(() => sessionCall(proxyUrl)), pid: proxy.pid ?? 0 });
	const superPort = await freePort();
	const supergateway = start(join(peers, 'node_modules', ...binOf('supergateway')), [
		...['--stdio', `${process.execPath} ${UPSTREAM}`, '--outputTransport', 'streamableHttp', '--stateful'],
		...['--port', String(superPort), '--logLevel', 'none'],
	]);
	const superUrl = `http://127.0.0.1:${superPort}/mcp`;
	all.push({
		name: 'supergateway',
		call: await ready(() => sessionCall(superUrl)),
		pid: supergateway.pid ?? 0,
	});
	return all;
}

function binOf(name: string): string[] {
	const manifest = JSON.parse(
		readFileSync(join(peers ?? '', 'node_modules', name, 'package.json'), 'utf8'),
	) as {
		bin: string | Record<string, string>;
	};
	const bin = typeof manifest.bin === 'string' ? manifest.bin : manifest.bin[name];
	return [name, ...(bin ?? '').split('/')];
}

async function inSequence(call: Call, count: number): Promise<number[]> {
	const times: number[] = [];
	for (let done = 0; done < count; done++) {
		const beganAtMs = performance.now();
		await call();
		times.push(performance.now() - beganAtMs);
	}
	return times;
}

/** Calls per second with 16 under way. */
async function atOnce(call: Call, count: number): Promise<number> {
	const beganAtMs = performance.now();
	let left = count;
	const worker = async (): Promise<void> => {
		while (left-- > 0) await call();
	};
	await Promise.all(Array.from({ length: CONCURRENT }, worker));
	return (count / (performance.now() - beganAtMs)) * 1_000;
}

function residentMb(pid: number): number {
	const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
	return Number(found?.[1] ?? 0) / 1024;
}

/** Milliseconds that a process has computed, its children not counted; Linux counts in hundredths of a second. */
function computedMs(pid: number): number {
	const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
	return (Number(fields[11]) + Number(fields[12])) * 10;
}

try {
	const direct = await directCall();
	const all = await contenders();
	for (const call of [direct, ...all.map((each) => each.call)]) await inSequence(call, 300);
	const latencies = new Map<string, number[]>([
		['direct', []],
		...all.map(({ name }) => [name, []] as [string, number[]]),
	]);
	const rates = new Map<string, number[]>(all.map(({ name }) => [name, []]));
	for (let round = 0; round < ROUNDS; round++) {
		latencies.get('direct')?.push(median(await inSequence(direct, CALLS_A_ROUND)));
		for (const { name, call } of all) {
			latencies.get(name)?.push(median(await inSequence(call, CALLS_A_ROUND)));
			rates.get(name)?.push(await atOnce(call, CALLS_A_ROUND * 4));
		}
	}
	const base = median(latencies.get('direct') ?? []);
	console.log(`Node ${process.version}; the server alone over stdio: p50 ${base.toFixed(2)} ms\n`);
	for (const { name, call, pid } of all) {
		const added = median(latencies.get(name) ?? []) - base;
		const rate = percentile(rates.get(name) ?? [], 0.5);
		const before = residentMb(pid);
		const computed = computedMs(pid);
		await atOnce(call, CALLS_FOR_MEMORY);
		const each = (computedMs(pid) - computed) / CALLS_FOR_MEMORY;
		const middle = residentMb(pid);
		await atOnce(call, CALLS_FOR_MEMORY);
		const after = residentMb(pid);
		console.log(
			`${name.padEnd(30)} added p50 ${added.toFixed(2)} ms   ${rate.toFixed(0)} calls/s at ${CONCURRENT}, ${each.toFixed(2)} ms computed for each   ` +
				`resident ${before.toFixed(0)} MB, after ${CALLS_FOR_MEMORY} calls ${middle.toFixed(0)}, after twice as many ${after.toFixed(0)}`,
		);
	}
} finally {
	for (const child of children) child.kill('SIGTERM');
	agent.destroy();
	rmSync(folder, { recursive: true, force: true });
	setTimeout(() => process.exit(), 3_000).unref();
}
