/** Why calls are left to go on without anybody watching. */
export type LeaveReason = 'asked' | 'detached' | 'waited' | 'question';

/** What a person, a signal or a limit does to the calls that a command follows. */
export class CallControls {
	readonly #leave = new AbortController();
	readonly #cancel = new AbortController();
	readonly #over = new AbortController();
	#plainCalls = 0;

	/** Fires when nobody watches any more; what is a task goes on. Its reason is a {@link LeaveReason}. */
	get leaving(): AbortSignal {
		return this.#leave.signal;
	}

	/** Fires when the calls are to be cancelled. */
	get cancelling(): AbortSignal {
		return this.#cancel.signal;
	}

	/** Fires when every call has ended, or nobody watches any more: there is nothing to ask about. */
	get over(): AbortSignal {
		return this.#over.signal;
	}

	/** Whether every call is a task by now: only a task can be left. */
	get canLeave(): boolean {
		return this.#plainCalls === 0;
	}

	/** Says that a call is no task yet, until the returned function is called. */
	beginPlainCall(): () => void {
		this.#plainCalls += 1;
		let isOver = false;
		return () => {
			if (!isOver) this.#plainCalls -= 1;
			isOver = true;
		};
	}

	leave(reason: LeaveReason): void {
		this.#leave.abort(reason);
		this.#over.abort();
	}

	cancel(): void {
		this.#cancel.abort();
	}

	/** Says that every call has ended. */
	end(): void {
		this.#over.abort();
	}

	/** Leaves the calls where they can be left, and cancels them where not. */
	letGo(reason: LeaveReason): void {
		if (this.canLeave) this.leave(reason);
		else this.cancel();
	}
}
