import {
	Client,
	SdkHttpError,
	SSEClientTransport,
	StreamableHTTPClientTransport,
	type Transport,
} from '../../client/sdk.ts';
import { systemClock } from '../../client/clock.ts';
import { HoldfastError, messageOf } from '../../errors.ts';
import type { JsonObject } from '../../protocol/json.ts';
import { type ChildCommand, ChildTransport } from '../child-transport.ts';
import { upstreamFetch } from '../upstream-fetch.ts';
import { readLists, type UpstreamLists } from '../upstream-lists.ts';
import type { UpstreamTarget } from '../upstream-options.ts';
import { commandWords } from './command-words.ts';

/** What a server says about itself when it is connected to once. */
export interface Inspection {
	readonly name: string;
	readonly version: string;
	readonly protocolVersion: string;
	/** From the start of the process or the first byte sent to the end of the handshake, in milliseconds. */
	readonly handshakeMs: number;
	readonly lists: UpstreamLists;
}

const SELF = { name: 'holdfast-doctor', version: '1' };

/** How much of what a process writes is told, in characters. */
const TOLD_LENGTH = 600;

/**
 * Connects to a server, reads its lists and ends the connection. Calls no tool.
 *
 * @param limitMs - how long the handshake may take, in milliseconds.
 * @throws UPSTREAM_UNAVAILABLE with what is wrong with the server, as far as that can be told from outside.
 */
export async function inspectServer(target: UpstreamTarget, limitMs: number): Promise<Inspection> {
	const heard: string[] = [];
	const client = new Client(SELF, {
		versionNegotiation: { mode: 'auto', probe: { timeoutMs: Math.min(15_000, limitMs) } },
	});
	const transport = await transportOf(target, (text) => void heard.push(text));
	const beganAtMs = performance.now();
	let cancelTimer = (): void => {};
	const late = new Promise<never>((_resolve, reject) => {
		cancelTimer = systemClock.after(limitMs, () => reject(new Error('no answer')));
	});
	try {
		await Promise.race([client.connect(transport, { timeout: limitMs }), late]);
		const handshakeMs = Math.round(performance.now() - beganAtMs);
		const lists = await Promise.race([readLists({ client }), late]);
		const { name = '', version = '' } = client.getServerVersion() ?? {};
		return {
			name,
			version,
			protocolVersion: client.getNegotiatedProtocolVersion() ?? '',
			handshakeMs,
			lists,
		};
	} catch (error) {
		const tookMs = performance.now() - beganAtMs;
		const reason = tookMs >= limitMs ? `it did not answer within ${limitMs} ms` : reasonOf(error);
		const message =
			target.kind === 'command'
				? await commandDiagnosis(target, reason, heard.join('').trim())
				: urlDiagnosis(target.url, reason, error);
		throw new HoldfastError('UPSTREAM_UNAVAILABLE', message, { cause: error });
	} finally {
		cancelTimer();
		await client.close().catch(() => {});
		await transport.close().catch(() => {});
	}
}

async function transportOf(target: UpstreamTarget, onStderr: (text: string) => void): Promise<Transport> {
	if (target.kind === 'command') return new ChildTransport(target, onStderr);
	const options = { fetch: await upstreamFetch(), requestInit: { headers: { ...target.headers } } };
	const url = new URL(target.url);
	return target.kind === 'http'
		? new StreamableHTTPClientTransport(url, options)
		: new SSEClientTransport(url, options);
}

function reasonOf(error: unknown): string {
	const reason = messageOf(error);
	return /connection closed|process has ended|EPIPE|ECONNRESET|write after end/i.test(reason)
		? 'it ended before it had answered'
		: reason.replace(/\.$/, '');
}

/** What is wrong with a command, and what to do about it. */
async function commandDiagnosis(target: ChildCommand, reason: string, heard: string): Promise<string> {
	const shown = [target.command, ...target.args].join(' ');
	const { isMissing, stdout, stderr } = await commandWords(target);
	const said = (heard === '' ? stderr.trim() : heard).slice(-TOLD_LENGTH);
	const stray = stdout.split('\n').find((line) => line.trim() !== '' && !/^\s*[{[]/.test(line));
	return [
		`The server "${shown}" cannot be used: ${reason}.`,
		...(isMissing ? ['The command does not exist, or is not on the PATH.'] : []),
		...(stray === undefined
			? []
			: [`It writes to stdout what is no MCP: "${stray.slice(0, 200)}". Logs belong on stderr.`]),
		said === '' ? 'It wrote nothing to stderr.' : `It wrote to stderr:\n${said}`,
	].join('\n');
}

const STATUS_HINTS: Readonly<Record<number, string>> = {
	401: 'It wants to know who calls: give --header "authorization: Bearer …".',
	403: 'It refuses this caller or this host name.',
	404: 'There is no MCP endpoint at this path; it is often /mcp.',
	405: 'This path takes no POST; a server with SSE only is given with --transport sse.',
};

/** What is wrong with a server at a URL, and what to do about it. */
function urlDiagnosis(url: string, reason: string, error: unknown): string {
	const status = statusOf(error);
	const isRefused = /ECONNREFUSED|ENOTFOUND|fetch failed/i.test(`${reason} ${causesOf(error)}`);
	const hint =
		status !== undefined
			? STATUS_HINTS[status]
			: isRefused
				? 'Nothing listens there, or it cannot be reached.'
				: undefined;
	return [`The server at ${url} cannot be used: ${reason}.`, ...(hint === undefined ? [] : [hint])].join(
		'\n',
	);
}

function statusOf(error: unknown): number | undefined {
	for (let at = error; at instanceof Error; at = at.cause)
		if (at instanceof SdkHttpError) return at.data.status;
	return undefined;
}

function causesOf(error: unknown): string {
	const texts: string[] = [];
	for (let at = error; at instanceof Error; at = at.cause)
		texts.push(at.message, String(Reflect.get(at, 'code') ?? ''));
	return texts.join(' ');
}

/** The hints of a tool that are set. */
export function hintsOf(tool: JsonObject): JsonObject {
	const { annotations } = tool;
	return typeof annotations === 'object' && annotations !== null && !Array.isArray(annotations)
		? (annotations as JsonObject)
		: {};
}
