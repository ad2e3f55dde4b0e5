import type { InputRequest, InputResponse, Task } from '../protocol/task.ts';
import type { Random } from './cadence.ts';
import type { Clock } from './clock.ts';
import type { Connection } from './connection.ts';
import type { JournalledAnswer } from './journal/journal.ts';
import type { TaskListener } from './listener.ts';
import type { TaskOutcome } from './outcome.ts';
import type { TaskPointer } from './reference.ts';
import type { RequestGate } from './request-gate.ts';

/** What the drivers of one client share. */
export interface DriverDeps {
	readonly connection: Connection;
	readonly gate: RequestGate;
	/** Undefined when the client only polls. */
	readonly listener: TaskListener | undefined;
	readonly clock: Clock;
	readonly random: Random;
	/** How often a task is asked for that is listened for, in milliseconds. */
	readonly listenBackstopMs: number;
	/** Something went wrong that ends nothing. */
	readonly onProblem: (error: unknown, taskId: string) => void;
}

/** What one driver needs for its task. */
export interface DriverTask {
	readonly pointer: TaskPointer;
	/** The task as the call was answered; undefined when it is come back to. */
	readonly created: Task | undefined;
	/** What was answered before. */
	readonly answers: Readonly<Record<string, JournalledAnswer>>;
	readonly ask: (key: string, request: InputRequest, signal: AbortSignal) => Promise<InputResponse>;
	readonly keepAnswer: (key: string, response: InputResponse) => Promise<boolean>;
	readonly answersSent: (keys: readonly string[]) => Promise<void>;
	/** Keeps the outcome for good; resolves before anybody is told. */
	readonly keepOutcome: (outcome: TaskOutcome) => Promise<void>;
}
