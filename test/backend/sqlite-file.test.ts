import {
	chmodSync,
	copyFileSync,
	mkdirSync,
	readFileSync,
	statSync,
	truncateSync,
	writeFileSync,
} from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { assertLocalFileSystem, networkMountOf } from '../../src/backend/sqlite/file-system.ts';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { MIGRATIONS, migrate } from '../../src/backend/sqlite/migrations.ts';
import { newDetails, newRecord, TEST_LIMITS } from '../../src/testing/records.ts';
import { onFile, sqliteFolder } from './sqlite-folder.ts';

const newFile = sqliteFolder();

/** A store with one task in it, closed again. */
async function storeWithTask(): Promise<{ file: string; taskId: string }> {
	const file = newFile();
	const details = newDetails();
	const backend = sqlite(file);
	await backend.open();
	await backend.store.create(details, TEST_LIMITS);
	await backend.close();
	return { file, taskId: details.record.taskId };
}

describe('options', () => {
	test.each([':memory:', 'file::memory:?cache=shared', 'file:tasks.db'])(
		'%s is refused and points at memory()',
		(file) => {
			expect(() => sqlite(file)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
			expect(() => sqlite(file)).toThrow('use memory()');
		},
	);

	test('an empty path and a wrong interval are refused', () => {
		expect(() => sqlite('')).toThrow('`file`');
		for (const watchIntervalMs of [0, 1.5, 60_001, Number.NaN])
			expect(() => sqlite({ file: 'tasks.db', watchIntervalMs })).toThrow('`watchIntervalMs`');
	});
});

describe('file', () => {
	test('folder and files can be read by their owner only', async () => {
		const file = newFile('deep/down/tasks.db');
		const backend = sqlite(file);
		await backend.open();
		await backend.store.create(newDetails(), TEST_LIMITS);
		const modes = [newFile('deep'), newFile('deep/down'), file, `${file}-wal`, `${file}-shm`].map(
			(path) => statSync(path).mode & 0o777,
		);
		await backend.close();
		expect(modes).toEqual([0o700, 0o700, 0o600, 0o600, 0o600]);
	});

	test('tasks outlive the backend', async () => {
		const { file, taskId } = await storeWithTask();
		const backend = sqlite(file);
		await backend.open();
		expect(await backend.store.get(taskId)).toEqual(newRecord({ taskId }));
		await backend.close();
	});

	test('nothing works before open() and after close()', async () => {
		const backend = sqlite(newFile());
		await expect(backend.store.get('x')).rejects.toMatchObject({ code: 'NOT_STARTED' });
		await backend.open();
		await backend.close();
		await expect(backend.store.get('x')).rejects.toMatchObject({ code: 'CLOSED' });
		await expect(backend.store.create(newDetails(), TEST_LIMITS)).rejects.toMatchObject({ code: 'CLOSED' });
		await expect(backend.open()).rejects.toMatchObject({ code: 'CLOSED' });
	});

	test('a store of a newer version is refused, untouched', async () => {
		const { file } = await storeWithTask();
		onFile(file, 'PRAGMA user_version = 7');
		const before = readFileSync(file);
		const error = await sqlite(file)
			.open()
			.catch((reason: unknown) => reason);
		expect(error).toMatchObject({ code: 'STORE_NEWER' });
		expect(String(error)).toMatch(/version 7.*up to 1.*Update holdfast/);
		expect(readFileSync(file).equals(before)).toBe(true);
	});

	test('a database of another application is refused, untouched', async () => {
		const file = newFile();
		onFile(file, 'CREATE TABLE books (title TEXT)');
		const before = readFileSync(file);
		await expect(sqlite(file).open()).rejects.toMatchObject({ code: 'STORE_UNUSABLE' });
		expect(readFileSync(file).equals(before)).toBe(true);
	});

	test('a file that is no database is refused, untouched', async () => {
		const file = newFile();
		writeFileSync(file, 'Dear diary, '.repeat(1_000));
		await expect(sqlite(file).open()).rejects.toMatchObject({ code: 'STORE_UNUSABLE' });
		expect(readFileSync(file, 'utf8')).toBe('Dear diary, '.repeat(1_000));
	});

	test('a truncated store is refused', async () => {
		const { file } = await storeWithTask();
		truncateSync(file, 5_000);
		const use = async () => {
			const backend = sqlite(file);
			await backend.open();
			await backend.store.create(newDetails(), TEST_LIMITS).finally(() => backend.close());
		};
		await expect(use()).rejects.toMatchObject({ code: 'STORE_UNUSABLE' });
	});

	test('an empty file becomes a store', async () => {
		const file = newFile();
		writeFileSync(file, '');
		const backend = sqlite(file);
		await backend.open();
		expect(await backend.store.get('x')).toBeUndefined();
		await backend.close();
	});

	test('a folder that cannot be made is refused', async () => {
		const { file } = await storeWithTask();
		await expect(sqlite(`${file}/tasks.db`).open()).rejects.toMatchObject({ code: 'STORE_UNUSABLE' });
		mkdirSync(newFile('folder.db'));
		await expect(sqlite(newFile('folder.db')).open()).rejects.toMatchObject({ code: 'STORE_UNUSABLE' });
	});

	// The superuser may write anywhere.
	test.skipIf(process.getuid?.() === 0)('a read-only folder is refused', async () => {
		mkdirSync(newFile('read-only'));
		chmodSync(newFile('read-only'), 0o500);
		await expect(sqlite(newFile('read-only/tasks.db')).open()).rejects.toMatchObject({
			code: 'STORE_UNUSABLE',
		});
	});

	test('a write that fails says so and changes nothing', async () => {
		const file = newFile();
		const backend = sqlite(file);
		await backend.open();
		onFile(
			file,
			"CREATE TRIGGER broken BEFORE INSERT ON payloads BEGIN SELECT RAISE(ABORT, 'disk on fire'); END",
		);
		const details = newDetails();
		const create = () => backend.store.create(details, TEST_LIMITS);
		await expect(create()).rejects.toMatchObject({ code: 'STORE_UNUSABLE', message: /disk on fire/ });
		onFile(file, 'DROP TRIGGER broken');
		expect(await backend.store.get(details.record.taskId)).toBeUndefined();
		expect(await create()).toEqual({ kind: 'created' });
		expect(onFile(file, 'SELECT open FROM counters')).toEqual([{ open: 1 }, { open: 1 }]);
		await backend.close();
	});
});

describe('migrations', () => {
	test('are numbered without gaps', () => {
		expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, index) => index + 1));
	});

	test('a store of version 1 is brought up to date, once, and a failed one is left as it was', async () => {
		const { file, taskId } = await storeWithTask();
		const copy = newFile();
		copyFileSync(file, copy);
		const added = { version: 2, sql: 'ALTER TABLE tasks ADD COLUMN colour TEXT' };
		const connection = new DatabaseSync(file);
		migrate(connection, file, [...MIGRATIONS.slice(0, 1), added]);
		migrate(connection, file, [...MIGRATIONS.slice(0, 1), added]);
		connection.close();
		expect(onFile(file, 'SELECT task_id, colour FROM tasks')).toEqual([{ task_id: taskId, colour: null }]);
		expect(onFile(file, 'PRAGMA user_version')).toEqual([{ user_version: 2 }]);

		const other = new DatabaseSync(copy);
		const broken = { version: 3, sql: 'DROP TABLE nothing' };
		expect(() => migrate(other, copy, [...MIGRATIONS.slice(0, 1), added, broken])).toThrow('nothing');
		other.close();
		expect(onFile(copy, 'PRAGMA user_version')).toEqual([{ user_version: 1 }]);
	});
});

describe('network file systems', () => {
	const mountInfo = [
		'27 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
		'40 27 0:40 / /home rw shared:5 master:1 - nfs4 files:/home rw,vers=4.2',
		'41 40 0:41 / /home/ada/local rw - xfs /dev/vdb rw',
		String.raw`42 27 0:42 / /mnt/two\040words rw - cifs //box/share rw`,
		'43 27 0:43 / /mnt/c rw - 9p C:\\134 rw,aname=drvfs;path=C:\\;uid=0,trans=fd',
		'44 27 0:44 / /sandbox rw - 9p none rw,trans=fd,rfdno=4',
		'45 27 0:45 / /remote rw - fuse.sshfs ada@box: rw',
		'46 27 0:46 / /covered rw - nfs box:/ rw',
		'47 27 0:47 / /covered rw - ext4 /dev/vdc rw',
		'',
	].join('\n');

	test.each([
		['/home/ada/tasks.db', 'nfs4', '/home'],
		['/home', 'nfs4', '/home'],
		['/mnt/two words/tasks.db', 'cifs', '/mnt/two words'],
		['/mnt/c/tasks.db', '9p', '/mnt/c'],
		['/remote/x/y', 'fuse.sshfs', '/remote'],
	])('%s lies on %s at %s', (path, type, mountPoint) => {
		expect(networkMountOf(path, mountInfo)).toEqual({ type, mountPoint });
	});

	test.each(['/tasks.db', '/homes/tasks.db', '/home/ada/local/tasks.db', '/sandbox/x', '/covered/x'])(
		'%s is local',
		(path) => expect(networkMountOf(path, mountInfo)).toBeNull(),
	);

	test('the error names the mount', () => {
		const everywhere = '27 1 0:9 / / rw - nfs box:/export rw';
		const check = () => assertLocalFileSystem(newFile(), everywhere);
		expect(check).toThrow(expect.objectContaining({ code: 'NETWORK_FILE_SYSTEM' }));
		expect(check).toThrow('(nfs, mounted at /)');
	});

	test('an unknown file system is let through', () => {
		assertLocalFileSystem(newFile(), null);
		assertLocalFileSystem(newFile(), '');
		assertLocalFileSystem(newFile(), 'nonsense\n - \n27 1 0:9 / / rw - newfs none rw');
	});
});
