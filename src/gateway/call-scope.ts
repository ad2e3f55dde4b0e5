import { AsyncLocalStorage } from 'node:async_hooks';
import type { InputRequest, InputResponse } from '../protocol/task.ts';

/** One call that an upstream is working on, as whoever that upstream asks something sees it. */
export interface CallScope {
	/** Who the call belongs to. */
	readonly principal: string;
	/** Brings a log message of the upstream to that host, while it waits for the answer. */
	log(params: object): void;
	/**
	 * Brings a question of the upstream to the host that made the call, and the answer back.
	 *
	 * @param key - the upstream's own key of a question in one of its tasks; undefined in a plain call.
	 */
	ask(request: InputRequest, key: string | undefined): Promise<InputResponse>;
}

/**
 * Which call is being worked on. What an upstream sends on the stream of a call arrives in the context in which
 * that call was sent, so a question finds its call without any help of the protocol.
 */
export const callScope = new AsyncLocalStorage<CallScope>();

/** The calls of one upstream, for questions that come beside any call. */
export class CallScopes {
	readonly #open = new Set<CallScope>();
	readonly #tasks = new Map<string, PromiseWithResolvers<CallScope>>();

	/** Runs a call of which the upstream may ask something. */
	async run<T>(scope: CallScope, work: () => Promise<T>): Promise<T> {
		this.#open.add(scope);
		try {
			return await callScope.run(scope, work);
		} finally {
			this.#open.delete(scope);
		}
	}

	/** Says which call an upstream's task belongs to. Call the returned function when it has ended. */
	bind(taskId: string, scope: CallScope): () => void {
		this.#taskOf(taskId).resolve(scope);
		return () => void this.#tasks.delete(taskId);
	}

	/** The call of an upstream's task; waits for {@link bind}, since a question may come at once. */
	ofTask(taskId: string): Promise<CallScope> {
		return this.#taskOf(taskId).promise;
	}

	/**
	 * The call that a question belongs to which says nothing about it: the one in whose context it arrived, else
	 * the latest. Undefined without a call, and where calls of several principals are open: a question is never
	 * shown to somebody whom it may not concern.
	 */
	current(): CallScope | undefined {
		const here = callScope.getStore();
		if (here && this.#open.has(here)) return here;
		const open = [...this.#open];
		const principals = new Set(open.map(({ principal }) => principal));
		return principals.size === 1 ? open.at(-1) : undefined;
	}

	#taskOf(taskId: string): PromiseWithResolvers<CallScope> {
		let waiting = this.#tasks.get(taskId);
		if (!waiting) {
			waiting = Promise.withResolvers();
			this.#tasks.set(taskId, waiting);
		}
		return waiting;
	}
}
