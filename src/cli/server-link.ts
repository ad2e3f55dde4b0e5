import type { Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../errors.ts';
import { problemOf } from '../client/problem.ts';
import {
	Client,
	SdkError,
	SdkErrorCode,
	SdkHttpError,
	StdioClientTransport,
	StreamableHTTPClientTransport,
	type Transport,
	UnauthorizedError,
} from '../client/sdk.ts';
import { taskFetch } from '../client/task-fetch.ts';
import { EXIT_CODES, Failure } from './failure.ts';
import { describeTarget, type ServerTarget } from './server-target.ts';
import { version } from './version.ts';

/** How a server is connected to. */
export interface LinkOptions {
	/** Sent with each request over HTTP. */
	readonly headers: Readonly<Record<string, string>>;
	/** How long connecting may take. */
	readonly requestTimeoutMs: number;
	/** Hears each line that a command writes on its stderr. */
	readonly onServerLog: (line: string) => void;
	/** Hears that a command ended and is started again. */
	readonly onRestart: () => void;
}

/** How long a command may be silent before it is taken for a server of an older protocol version. */
const PROBE_TIMEOUT_MS = 10_000;

const FIRST_RESTART_MS = 250;
const MAX_RESTART_MS = 10_000;

/** How many lines of a command's stderr are told when it could not be connected to. */
const KEPT_LINES = 10;

/**
 * A connected SDK client. A server that is a command is started again whenever it ends, since its tasks are in its
 * store and not in its process.
 */
export class ServerLink {
	readonly client: Client;
	readonly #target: ServerTarget;
	readonly #options: LinkOptions;
	readonly #closed = new AbortController();
	#lastLines: string[] = [];

	/** Not connected yet, so that handlers can be registered before anything arrives. */
	constructor(target: ServerTarget, options: LinkOptions) {
		this.#target = target;
		this.#options = options;
		const timeoutMs = Math.min(PROBE_TIMEOUT_MS, options.requestTimeoutMs);
		this.client = newClient(target.kind === 'stdio' ? { timeoutMs } : {});
	}

	/** Whether the server is a command, which ends with this process. */
	get isCommand(): boolean {
		return this.#target.kind === 'stdio';
	}

	/**
	 * Connects, until `signal` fires.
	 *
	 * @throws Failure with the exit code for a server that could not be reached.
	 */
	async connect(signal: AbortSignal): Promise<void> {
		const { requestTimeoutMs } = this.#options;
		try {
			await this.client.connect(this.#transport(), { signal, timeout: requestTimeoutMs });
		} catch (error) {
			await this.close();
			throw this.unreachable(error);
		}
		if (this.#target.kind === 'stdio') this.client.onclose = () => void this.#restart();
	}

	/** A failure to reach the server, in words for the person at the terminal. */
	unreachable(error: unknown): Failure {
		const words = [
			`${describeTarget(this.#target)} could not be reached: ${whyUnreachable(error, this.#target)}`,
			...this.#lastLines.map((line) => `  ${line}`),
		];
		return new Failure(words.join('\n'), { cause: error, exitCode: EXIT_CODES.unreachable });
	}

	/** Whether a failed request says that the server could not be reached, and nothing else. */
	static isOutage(error: unknown): boolean {
		return error instanceof UnauthorizedError || problemOf(error).kind === 'outage';
	}

	/** Disconnects; a command is ended. */
	async close(): Promise<void> {
		this.#closed.abort();
		await this.client.close().catch(() => {});
	}

	#transport(): Transport {
		const target = this.#target;
		if (target.kind === 'http') {
			const { headers } = this.#options;
			return new StreamableHTTPClientTransport(new URL(target.url), {
				fetch: taskFetch(),
				requestInit: { headers: { ...headers } },
			});
		}
		const [command = '', ...args] = target.command;
		const transport = new StdioClientTransport({
			...{ command, args, cwd: target.cwd, stderr: 'pipe' },
			// A command that a person types has that person's environment, as any other has.
			env: Object.fromEntries(Object.entries(process.env).filter(isSet)),
		});
		if (transport.stderr) this.#readLog(transport.stderr as Readable);
		return transport;
	}

	#readLog(stderr: Readable): void {
		this.#lastLines = [];
		createInterface({ input: stderr }).on('line', (line) => {
			this.#lastLines = [...this.#lastLines, line].slice(-KEPT_LINES);
			this.#options.onServerLog(line);
		});
	}

	async #restart(): Promise<void> {
		const { signal } = this.#closed;
		const discover = this.client.getDiscoverResult();
		for (let delayMs = FIRST_RESTART_MS; !signal.aborted; delayMs = Math.min(2 * delayMs, MAX_RESTART_MS)) {
			try {
				this.#options.onRestart();
				await wait(delayMs, undefined, { signal });
				await this.client.connect(this.#transport(), {
					timeout: this.#options.requestTimeoutMs,
					prior: discover ? { kind: 'modern', discover } : { kind: 'legacy' },
				});
				return;
			} catch {
				// It is tried until somebody loses patience or the task's lifetime is over.
			}
		}
	}
}

/**
 * An SDK client as this command line introduces itself.
 *
 * @param probe - how a server is asked for its protocol version.
 */
export function newClient(probe: { readonly timeoutMs?: number } = {}): Client {
	return new Client(
		{ name: 'holdfast', title: 'holdfast command line', version: version() },
		{
			// Also where nobody sits at a terminal now: a task outlives this process, and its questions can be
			// answered by whoever resumes it.
			capabilities: { elicitation: { form: {}, url: {} } },
			versionNegotiation: { mode: 'auto', probe },
		},
	);
}

function isSet(entry: [string, string | undefined]): entry is [string, string] {
	return entry[1] !== undefined;
}

/** The system's codes, in words. */
const SYSTEM_WORDS: Readonly<Record<string, string>> = {
	ECONNREFUSED: 'nothing listens there',
	ENOTFOUND: 'there is no such host',
	EAI_AGAIN: 'its name could not be looked up',
	ECONNRESET: 'the connection was cut',
	UND_ERR_SOCKET: 'the connection was cut',
	ETIMEDOUT: 'it did not answer in time',
	UND_ERR_CONNECT_TIMEOUT: 'it did not answer in time',
	UND_ERR_HEADERS_TIMEOUT: 'it did not answer in time',
	ENOENT: 'there is no such command',
	EACCES: 'the command may not be run',
};

function whyUnreachable(error: unknown, target: ServerTarget): string {
	let innermost = messageOf(error);
	for (let cause: unknown = error; cause instanceof Error; cause = causeOf(cause)) {
		innermost = cause.message;
		if (cause instanceof UnauthorizedError) return TOKEN_ADVICE;
		if (cause instanceof SdkHttpError) return httpWords(cause);
		const words = SYSTEM_WORDS[String(Reflect.get(cause, 'code'))];
		if (words !== undefined) return words;
		if (cause instanceof SdkError && cause.code === SdkErrorCode.RequestTimeout)
			return 'it did not answer in time';
		if (cause instanceof SdkError && cause.code === SdkErrorCode.ConnectionClosed)
			return target.kind === 'stdio' ? 'the command ended' : 'the connection was closed';
	}
	return innermost;
}

const TOKEN_ADVICE = 'it wants to know who you are. Give --token, HOLDFAST_TOKEN or --header';

function httpWords(error: SdkHttpError): string {
	const { status } = error.data;
	if (status === 401) return TOKEN_ADVICE;
	if (status === 403) return 'it refuses you (HTTP 403)';
	if (status === 404 || status === 405) return `there is no MCP endpoint at this path (HTTP ${status})`;
	return `it answers with HTTP ${status}`;
}

/** The SDK puts what happened under `cause` or, for a failed negotiation, under `data.cause`. */
function causeOf(error: Error): unknown {
	if (error.cause !== undefined) return error.cause;
	const data: unknown = Reflect.get(error, 'data');
	return typeof data === 'object' && data !== null ? Reflect.get(data, 'cause') : undefined;
}
