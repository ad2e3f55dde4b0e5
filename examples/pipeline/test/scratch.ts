import {
	existsSync,
	mkdirSync,
	mkdtempSync,
	readFileSync,
	realpathSync,
	rmSync,
	writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './until.ts';

/** A folder that goes away with the test, with a folder for a checkout and a place for the database. */
export class Scratch {
	/** The real path: systems have their temporary folder behind a link. */
	readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'pipeline-')));
	readonly database = join(this.folder, 'state', 'tasks.db');
	#checkouts = 0;

	/** A new checkout with this pipeline file and, where given, other files. */
	checkout(yaml: string, files: Readonly<Record<string, string>> = {}): Checkout {
		this.#checkouts += 1;
		const folder = join(this.folder, 'checkouts', String(this.#checkouts));
		mkdirSync(folder, { recursive: true });
		for (const [name, text] of Object.entries({ 'pipeline.yaml': yaml, ...files }))
			writeFileSync(join(folder, name), text);
		return new Checkout(folder);
	}

	remove(): void {
		rmSync(this.folder, { recursive: true, force: true });
	}
}

/** A checkout in which stages leave and find files. */
export class Checkout {
	readonly folder: string;

	constructor(folder: string) {
		this.folder = folder;
	}

	/** The lines of a file; none when there is no such file. */
	lines(name: string): string[] {
		const path = join(this.folder, name);
		return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
	}

	touch(name: string): void {
		writeFileSync(join(this.folder, name), '');
	}

	/** Waits until a stage wrote this many numbers of processes. */
	pids(name: string, count = 1): Promise<number[]> {
		return until(`${count} lines in ${name}`, () => {
			const pids = this.lines(name).map(Number);
			return pids.length >= count ? pids : undefined;
		});
	}
}
