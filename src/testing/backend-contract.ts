import type { Backend, TimeSource } from '../backend/backend.ts';
import { checkLeases } from './contract/leases.ts';
import { checkLimits } from './contract/limits.ts';
import { checkLists } from './contract/lists.ts';
import { checkReading } from './contract/reading.ts';
import { checkWakeUps } from './contract/wake-ups.ts';
import { checkWriting } from './contract/writing.ts';
import { T0 } from './records.ts';

/** The two functions of a test runner that the suite needs; Vitest's and `node:test`'s fit. */
export interface TestRunner {
	readonly describe: (name: string, body: () => void) => void;
	readonly test: (name: string, body: () => Promise<void>) => void;
}

/** What {@link backendContract} is run on. */
export interface BackendContractOptions {
	/** What the backend is called in test names. */
	readonly name: string;
	/** A backend with nothing in it, not open yet. The suite opens it and closes it. */
	create(time: TimeSource): Promise<Backend>;
}

/**
 * The one suite that every backend passes: each test is a sentence of the contracts `TaskStore`, `Dispatcher`
 * and `Signals`. It asks nothing else of a backend.
 */
export function backendContract(options: BackendContractOptions, { describe, test }: TestRunner): void {
	function check(name: string, body: (backend: Backend) => Promise<void>): void {
		test(name, async () => {
			const backend = await options.create({ nowMs: () => T0 });
			await backend.open();
			try {
				await body(backend);
			} finally {
				await backend.close();
			}
		});
	}
	describe(`${options.name} keeps the backend contract`, () => {
		describe('create and read', () => checkReading(check));
		describe('limits', () => checkLimits(check));
		describe('replace and remove', () => checkWriting(check));
		describe('leases and steps', () => checkLeases(check));
		describe('list', () => checkLists(check));
		describe('wake-ups', () => checkWakeUps(check));
	});
}
