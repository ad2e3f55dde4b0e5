/** The stores that a fleet is tried on: `HOLDFAST_TEST_BACKEND` chooses. A new one has one entry in each table. */
import type { Backend } from '../../src/backend/backend.ts';
import { migrate, postgres } from '../../src/backend/postgres/index.ts';
import { redis } from '../../src/backend/redis/index.ts';
import { OwnPostgres } from '../support/own-postgres.ts';
import { OwnRedis } from '../support/own-redis.ts';
import { CutProxy } from '../support/cut-proxy.ts';

/** Where a process of the fleet finds the store. */
export interface StoreAddress {
	readonly kind: string;
	readonly url: string;
}

/** A store of our own, which may be restarted and cut off. */
export interface FleetStore {
	/** Leads through what {@link cut} cuts. */
	readonly address: StoreAddress;
	/** A way to it that is never cut. */
	readonly direct: Backend;
	/** Ends it as a crash would, and starts it again. */
	restart(): Promise<void>;
	cut(): void;
	mend(): void;
	remove(): Promise<void>;
}

const STORES: Readonly<Record<string, () => Promise<FleetStore>>> = {
	postgres: async () => {
		const own = await OwnPostgres.create();
		const proxy = await CutProxy.to(own.port);
		await migrate(own.url);
		const direct = postgres({ url: own.url, patienceMs: 30_000 });
		await direct.open();
		return {
			address: { kind: 'postgres', url: own.url.replace(String(own.port), String(proxy.port)) },
			direct,
			restart: async () => {
				await own.stop('immediate');
				await own.start();
			},
			cut: () => proxy.cut(),
			mend: () => proxy.mend(),
			remove: async () => {
				await direct.close();
				await proxy.close();
				await own.remove();
			},
		};
	},
	redis: async () => {
		const own = await OwnRedis.create();
		const proxy = await CutProxy.to(own.port);
		const direct = redis({ url: own.url, patienceMs: 30_000 });
		await direct.open();
		return {
			address: { kind: 'redis', url: own.url.replace(String(own.port), String(proxy.port)) },
			direct,
			restart: async () => {
				await own.kill();
				await own.start();
			},
			cut: () => proxy.cut(),
			mend: () => proxy.mend(),
			remove: async () => {
				await direct.close();
				await proxy.close();
				await own.remove();
			},
		};
	},
};

const BACKENDS: Readonly<Record<string, (url: string) => Backend>> = {
	postgres: (url) => postgres(url),
	redis: (url) => redis(url),
};

/** A store for a fleet, of the chosen kind; by default Postgres. */
export function fleetStore(kind: string): Promise<FleetStore> {
	const make = STORES[kind];
	if (!make)
		throw new Error(`${kind} is no store for several machines; there are: ${Object.keys(STORES).join(', ')}`);
	return make();
}

/** What a process of the fleet keeps its tasks in. */
export function backendAt({ kind, url }: StoreAddress): Backend {
	const backend = BACKENDS[kind]?.(url);
	if (!backend) throw new Error(`there is no store of the kind ${kind}`);
	return backend;
}
