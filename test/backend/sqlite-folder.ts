import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll } from 'vitest';

/** Gives a new path in a folder that goes away after the tests of this file. */
export function sqliteFolder(): (name?: string) => string {
	const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
	let files = 0;
	afterAll(() => rmSync(folder, { recursive: true, force: true }));
	return (name = `${files++}.db`) => join(folder, name);
}

/** Runs SQL on a file behind the backend's back, and gives the rows of the last statement. */
export function onFile<Row = unknown>(file: string, ...statements: string[]): Row[] {
	const connection = new DatabaseSync(file);
	try {
		connection.exec('PRAGMA busy_timeout = 5000');
		return statements.map((sql) => connection.prepare(sql).all()).at(-1) as Row[];
	} finally {
		connection.close();
	}
}
