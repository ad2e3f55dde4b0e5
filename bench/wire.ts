/** Requests in the form in which a client sends them, and children that answer messages. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
	CLIENT_CAPABILITIES_META,
	CLIENT_INFO_META,
	PROTOCOL_VERSION_META,
	TASKS_EXTENSION,
	TASKS_PROTOCOL_VERSION,
} from '../src/protocol/names.ts';

const META = {
	[PROTOCOL_VERSION_META]: TASKS_PROTOCOL_VERSION,
	[CLIENT_INFO_META]: { name: 'bench', version: '1.0.0' },
	[CLIENT_CAPABILITIES_META]: { extensions: { [TASKS_EXTENSION]: {} } },
};

/** The next message of a child; whoever sends it is known by who was asked. */
export async function next<Message>(child: ChildProcess): Promise<Message> {
	const gone = new AbortController();
	const ended = once(child, 'exit', { signal: gone.signal }).then(() => {
		throw new Error('a child process ended too early');
	});
	try {
		const [message] = (await Promise.race([
			once(child, 'message', { signal: gone.signal }),
			ended,
		])) as unknown[];
		return message as Message;
	} finally {
		ended.catch(() => {});
		gone.abort();
	}
}

/** A whole request, head and body. */
export function request(method: string, name: string, params: Readonly<Record<string, unknown>>): string {
	const text = body(method, params);
	const head = Object.entries({
		host: 'localhost',
		...headers(method, name),
		'content-length': String(Buffer.byteLength(text)),
	}).map(([key, value]) => `${key}: ${value}\r\n`);
	return `POST /mcp HTTP/1.1\r\n${head.join('')}\r\n${text}`;
}

export function headers(method: string, name: string): Record<string, string> {
	return {
		'content-type': 'application/json',
		accept: 'application/json, text/event-stream',
		'mcp-protocol-version': TASKS_PROTOCOL_VERSION,
		'mcp-method': method,
		'mcp-name': name,
	};
}

export function body(method: string, params: Readonly<Record<string, unknown>>): string {
	return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } });
}
