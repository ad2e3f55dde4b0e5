import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import type { Writable } from 'node:stream';
import { HoldfastError, messageOf } from '../errors.ts';
import { type JSONRPCMessage, serializeMessage, type Transport } from '../client/sdk.ts';
import { MessageLines } from './message-lines.ts';

/** A command that is an MCP server on its stdin and stdout. */
export interface ChildCommand {
	readonly command: string;
	readonly args: readonly string[];
	/** The whole environment of the process. */
	readonly env: Readonly<Record<string, string>>;
	/** Default: the folder of this process. */
	readonly cwd?: string;
}

/** Largest message that is read from a child, in bytes; a longer answer is an error for its request. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** How long a child has to end by itself once its stdin is closed, and again after SIGTERM. */
const END_GRACE_MS = 2_000;

/**
 * Leads the process group in which the child runs. Its file 3 is a pipe from this process, so that it learns
 * of this process's death, whatever killed it, and takes the whole group along. It leaves stdin and stdout to
 * the child, so no message passes through it.
 */
const GUARD = `
exec 4<&0
"$@" <&4 3<&- 4<&- &
child=$!
exec <&- >&- 2>&- 4<&-
(
	trap '' TERM
	read -r _ <&3
	sleep ${END_GRACE_MS / 1_000}
	kill -TERM 0
	sleep ${END_GRACE_MS / 1_000}
	kill -KILL 0
) &
trap '' TERM
wait "$child"
exit $?
`;

/**
 * A child process as an MCP transport: messages one a line. The child leads no life of its own: it and
 * whatever it started are gone soon after the transport is closed or this process has ended.
 */
export class ChildTransport implements Transport {
	onmessage?: NonNullable<Transport['onmessage']>;
	onclose?: NonNullable<Transport['onclose']>;
	onerror?: NonNullable<Transport['onerror']>;
	/** By its having this member the SDK knows a process, which may be too old to answer what it does not know. */
	readonly stderr = null;
	readonly #command: ChildCommand;
	readonly #onStderr: (text: string) => void;
	readonly #lines = new MessageLines(MAX_MESSAGE_BYTES, {
		onMessage: (message) => this.onmessage?.(message as unknown as JSONRPCMessage),
		onProblem: (error) => this.onerror?.(error),
		onLost: (error) => {
			this.onerror?.(error);
			this.#closed();
		},
	});
	#child: ChildProcess | undefined;
	#isClosed = false;
	#ended: Promise<void> | undefined;
	#ending: string | undefined;

	/** @param onStderr - takes what the child writes to its stderr. */
	constructor(command: ChildCommand, onStderr: (text: string) => void) {
		this.#command = command;
		this.#onStderr = onStderr;
	}

	get pid(): number | null {
		return this.#child?.pid ?? null;
	}

	/** How the child ended, in words; undefined while it runs. */
	get ending(): string | undefined {
		return this.#ending;
	}

	/** @throws UPSTREAM_UNAVAILABLE when the command cannot be started. */
	async start(): Promise<void> {
		const { command, args, env, cwd } = this.#command;
		const isPosix = process.platform !== 'win32';
		const guarded = isPosix ? ['/bin/sh', '-c', GUARD, 'holdfast', command, ...args] : [command, ...args];
		const [program = command, ...programArgs] = guarded;
		const child = spawn(program, programArgs, {
			env: { ...env },
			...(cwd !== undefined && { cwd }),
			stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
			detached: isPosix,
			windowsHide: true,
		});
		this.#child = child;
		this.#ended = new Promise((resolve) => {
			child.once('exit', (code, signal) => {
				this.#ending = endingOf(command, code, signal);
				resolve();
			});
			// A child that was never there has no exit.
			child.once('error', () => resolve());
		});
		await new Promise<void>((resolve, reject) => {
			child.once('spawn', resolve);
			child.once('error', (error) => {
				// The system blames the program for a folder that is not there.
				const reason = cwd !== undefined && !existsSync(cwd) ? `there is no folder ${cwd}` : messageOf(error);
				reject(new HoldfastError('UPSTREAM_UNAVAILABLE', `"${command}" cannot be started: ${reason}`));
			});
		});
		child.stdout?.on('data', (chunk: Buffer) => this.#isClosed || this.#lines.append(chunk));
		child.stdout?.once('end', () => this.#closed());
		child.stderr?.setEncoding('utf8').on('data', this.#onStderr);
		child.once('exit', () => this.#closed());
		// A child that has gone breaks its pipes; its end is told by `close`.
		for (const pipe of [child.stdin, child.stdout, child.stderr, child.stdio[3]]) pipe?.on('error', () => {});
	}

	send(message: JSONRPCMessage): Promise<void> {
		const stdin = this.#child?.stdin;
		if (!stdin || this.#isClosed) return Promise.reject(new Error('The process has ended'));
		return new Promise((resolve, reject) => {
			stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
		});
	}

	/** Ends the child and whatever it started; resolves when they are gone. */
	async close(): Promise<void> {
		this.#closed();
		await this.#ended;
	}

	#closed(): void {
		if (this.#isClosed) return;
		this.#isClosed = true;
		const child = this.#child;
		child?.stdin?.end();
		// The guard now takes the group along.
		(child?.stdio[3] as Writable | null | undefined)?.destroy();
		child?.stdout?.destroy();
		// Without a guard there is at least the child itself.
		if (process.platform === 'win32') setTimeout(() => child?.kill(), END_GRACE_MS).unref();
		this.onclose?.();
	}
}

/** What a shell says by its exit code about a command that it could not run. */
const SHELL_CODES: Readonly<Record<number, string>> = { 126: 'cannot be run', 127: 'was not found' };

/** A shell answers for a command that a signal ended with this and the number of the signal. */
const SIGNAL_BASE = 128;

function endingOf(command: string, code: number | null, signal: string | null): string {
	const words = SHELL_CODES[code ?? 0];
	if (words !== undefined) return `"${command}" ${words}`;
	const number = (code ?? 0) - SIGNAL_BASE;
	const name = signal ?? Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
	return `"${command}" ended ${name === undefined ? `with code ${code}` : `by ${name}`}`;
}
