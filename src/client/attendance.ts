import type { DetailedTask } from '../protocol/task.ts';

/** What the attendance of one task needs. */
export interface AttendanceDeps {
	/** Brings the questions of the task to the host; see `TaskWire.attend`. */
	readonly attend: (signal: AbortSignal) => Promise<DetailedTask | undefined>;
	/** The server said how the task stands, most likely how it ended. */
	readonly onTask: (task: DetailedTask) => void;
	/** The request broke; the task lives on. */
	readonly onTrouble: (error: unknown) => void;
}

/**
 * The request on which a server asks the questions of one task, where that takes one (L04): at most one is open, and
 * one that broke is made again when the task is next seen to want input. It passes no gate, because people think for
 * as long as they like, and other requests must get through meanwhile.
 */
export class Attendance {
	readonly #deps: AttendanceDeps;
	#isOpen = false;

	constructor(deps: AttendanceDeps) {
		this.#deps = deps;
	}

	/** Whether the request is open. */
	get isOpen(): boolean {
		return this.#isOpen;
	}

	/** Makes the request unless it is open. */
	begin(signal: AbortSignal): void {
		if (!this.#isOpen) void this.#run(signal);
	}

	async #run(signal: AbortSignal): Promise<void> {
		this.#isOpen = true;
		try {
			const task = await this.#deps.attend(signal);
			this.#isOpen = false;
			if (task) this.#deps.onTask(task);
		} catch (error) {
			this.#isOpen = false;
			if (!signal.aborted) this.#deps.onTrouble(error);
		}
	}
}
