/** Where tests find a Redis: the service that answers, else one of their own, else none. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import type { Backend } from '../../src/backend/backend.ts';
import { redis, type RedisOptions } from '../../src/backend/redis/index.ts';
import { messageOf } from '../../src/errors.ts';
import { answers, OwnRedis } from './own-redis.ts';

const SERVICE = process.env['HOLDFAST_TEST_REDIS'] ?? 'redis://127.0.0.1:6379/0';

/** A Redis for the tests of one file. */
export interface RedisService {
	readonly url: string;
	/** A name that no other test has; its keys go away with `close`. */
	readonly newPrefix: () => string;
	/** A backend on a prefix with nothing in it, not open yet. */
	readonly newBackend: (options?: Partial<RedisOptions>) => Backend;
	/** Sends commands behind the backend's back. */
	readonly client: Redis;
	readonly close: () => Promise<void>;
}

/**
 * Finds or starts a Redis. Answers the reason as a text where there is none; in continuous integration that is an
 * error, since tests that are skipped there prove nothing.
 */
export async function redisService(): Promise<RedisService | string> {
	if (await answers(SERVICE)) return serviceAt(SERVICE, async () => {});
	try {
		const own = await OwnRedis.create();
		return serviceAt(own.url, () => own.remove());
	} catch (error) {
		const reason = `no Redis at ${SERVICE}, and none could be started: ${messageOf(error)}`;
		if (process.env['CI']) throw new Error(reason, { cause: error });
		return reason;
	}
}

/** Removes all keys of a prefix. */
export async function removePrefix(client: Redis, prefix: string): Promise<void> {
	for await (const keys of client.scanStream({ match: `{${prefix}}:*`, count: 1_000 }))
		if ((keys as string[]).length > 0) await client.unlink(...(keys as string[]));
}

function serviceAt(url: string, stop: () => Promise<void>): RedisService {
	silenceWhatTheServiceMayLose();
	const client = new Redis(url);
	const prefixes: string[] = [];
	const newPrefix = (): string => {
		const prefix = `test_${randomUUID()}`;
		prefixes.push(prefix);
		return prefix;
	};
	return {
		url,
		client,
		newPrefix,
		newBackend: (options = {}) => redis({ url, prefix: newPrefix(), ...options }),
		close: async () => {
			for (const prefix of prefixes) await removePrefix(client, prefix);
			await client.quit();
			await stop();
		},
	};
}

/** Nothing that tests write needs to outlive the service, and hundreds of warnings would hide another one. */
function silenceWhatTheServiceMayLose(): void {
	const emit = process.emitWarning.bind(process);
	process.emitWarning = ((warning: string | Error, ...rest: [string]) => {
		if (!/appendonly|appendfsync/.test(String(warning))) emit(warning, ...rest);
	}) as typeof process.emitWarning;
}
