/** Calls into a worker thread: a method's name and arguments go over, its result comes back. */
import { type MessagePort, type Transferable, Worker } from 'node:worker_threads';

type Methods<T> = { [K in keyof T]: T[K] extends (...values: never[]) => unknown ? K : never }[keyof T];
type Arguments<T, K extends keyof T> = T[K] extends (...values: infer A) => unknown ? A : never;
type Result<T, K extends keyof T> = T[K] extends (...values: never[]) => infer R ? R : never;

interface Call {
	readonly id: number;
	readonly method: string;
	readonly values: unknown[];
}

type Reply =
	| { readonly id: number; readonly result: unknown }
	| { readonly id: number; readonly error: Error };

type Port = Pick<MessagePort, 'postMessage' | 'ref' | 'unref'> & {
	on(event: 'message', listener: (reply: Reply) => void): unknown;
};

interface Waiting {
	readonly resolve: (result: unknown) => void;
	readonly reject: (error: Error) => void;
}

export class Calls<T> {
	readonly #port: Port;
	readonly #waiting = new Map<number, Waiting>();
	#lastId = 0;
	#broken: Error | undefined;

	constructor(port: Port) {
		this.#port = port;
		port.on('message', (reply: Reply) => this.#settle(reply));
		// A process that is done is not kept alive by an idle worker, only by calls still open.
		port.unref();
	}

	call<K extends Methods<T> & string>(method: K, ...values: Arguments<T, K>): Promise<Awaited<Result<T, K>>> {
		return this.move([], method, ...values);
	}

	/** A call whose given buffers move over instead of being copied. */
	move<K extends Methods<T> & string>(
		transfer: readonly Transferable[],
		method: K,
		...values: Arguments<T, K>
	): Promise<Awaited<Result<T, K>>> {
		if (this.#broken !== undefined) return Promise.reject(this.#broken);
		this.#lastId += 1;
		const call: Call = { id: this.#lastId, method, values };
		return new Promise((resolve, reject) => {
			if (this.#waiting.size === 0) this.#port.ref();
			this.#waiting.set(call.id, { resolve: resolve as (result: unknown) => void, reject });
			this.#port.postMessage(call, transfer);
		});
	}

	/** Fails all calls, open and to come. */
	fail(error: Error): void {
		this.#broken ??= error;
		for (const { reject } of this.#waiting.values()) reject(this.#broken);
		this.#waiting.clear();
	}

	#settle(reply: Reply): void {
		const waiting = this.#waiting.get(reply.id);
		this.#waiting.delete(reply.id);
		if (this.#waiting.size === 0) this.#port.unref();
		if ('error' in reply) waiting?.reject(reply.error);
		else waiting?.resolve(reply.result);
	}
}

// A page in the making is soon garbage: with room for many of them, little of it is ever copied.
const youngMb = 48;

/** A worker thread and the calls into it. */
export class Thread<T> {
	readonly calls: Calls<T>;
	readonly #worker: Worker;

	constructor(file: URL, data?: unknown, transfer: readonly Transferable[] = []) {
		this.#worker = new Worker(file, {
			workerData: data,
			transferList: [...transfer],
			resourceLimits: { maxYoungGenerationSizeMb: youngMb },
		});
		this.calls = new Calls<T>(this.#worker);
		this.#worker.on('error', (error: Error) => this.calls.fail(error));
		this.#worker.on('exit', () => this.calls.fail(new Error('the worker thread has ended')));
	}

	async close(): Promise<void> {
		await this.#worker.terminate();
	}
}

/** The worker's side: answers what comes in at a port. */
export const answerCalls = (port: MessagePort, target: object): void => {
	port.on('message', async (call: Call) => {
		const reply = perform(target, call);
		try {
			port.postMessage('result' in reply ? { ...reply, result: await reply.result } : reply);
		} catch (error) {
			port.postMessage({ id: call.id, error: toError(error) });
		}
	});
};

/**
 * The same for a thread that stores: all calls that have come in by now are one transaction, and are answered once
 * it is committed. The transaction runs its work at once and either keeps all of it or throws.
 */
export const answerCallsTogether = (
	ports: readonly MessagePort[],
	target: object,
	transaction: (work: () => void) => void,
	afterwards: () => void,
): void => {
	let queue: { readonly port: MessagePort; readonly call: Call }[] = [];
	const answer = (): void => {
		const taken = queue;
		queue = [];
		const replies: { readonly port: MessagePort; readonly reply: Reply }[] = [];
		try {
			transaction(() => {
				for (const { port, call } of taken) replies.push({ port, reply: perform(target, call) });
			});
		} catch (error) {
			replies.length = 0;
			for (const { port, call } of taken)
				replies.push({ port, reply: { id: call.id, error: toError(error) } });
		}
		for (const { port, reply } of replies) port.postMessage(reply);
		afterwards();
	};
	for (const port of ports)
		port.on('message', (call: Call) => {
			queue.push({ port, call });
			if (queue.length === 1) setImmediate(answer);
		});
};

const perform = (target: object, { id, method, values }: Call): Reply => {
	try {
		const run = Reflect.get(target, method) as (...values: unknown[]) => unknown;
		return { id, result: run.apply(target, values) };
	} catch (error) {
		return { id, error: toError(error) };
	}
};

const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
