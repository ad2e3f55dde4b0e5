import { systemClock } from '../client/clock.ts';
import type { Log } from '../engine/options.ts';
import { HoldfastError, messageOf } from '../errors.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { FoldMapping } from './folding/fold-mapping.ts';
import { type FoldedTool, foldTools, type HiddenFrom } from './folding/folded-tools.ts';
import { isFallbackTool } from './fallback-tools.ts';
import type { Upstream } from './upstream.ts';
import { type ListName, NO_LISTS, readLists, type UpstreamLists } from './upstream-lists.ts';

/** Keeps what the upstreams offered last, so that a host is answered before they are awake. */
export interface CatalogueStore {
	read(upstream: string): Promise<UpstreamLists | undefined>;
	write(upstream: string, lists: UpstreamLists): Promise<void>;
}

/** How long a list waits for an upstream that has never been seen, in milliseconds; hosts wait for 10 s and less. */
const FIRST_WAIT_MS = 5_000;

/** One entry of a list, and whose it is. */
export interface Offer {
	readonly upstream: Upstream;
	/** The upstream's own name of it. */
	readonly name: string;
	/** As the upstream wrote it. */
	readonly entry: JsonObject;
	/** The families that a tool begins. */
	readonly mappings: readonly FoldMapping[];
	readonly hiddenFrom: HiddenFrom;
}

/** What all upstreams offer together, under names that are unique. */
export class Catalogue {
	readonly #upstreams: readonly Upstream[];
	readonly #store: CatalogueStore;
	readonly #log: Log;
	readonly #onChange: (names: readonly ListName[]) => void;
	readonly #known = new Map<Upstream, UpstreamLists>();
	/** What is made of `#known`; made anew when that changes. */
	readonly #merged = new Map<ListName, ReadonlyMap<string, Offer>>();
	readonly #reading = new Map<Upstream, Promise<void>>();
	readonly #fresh = new Set<Upstream>();
	/** Lists that an upstream has said are changed, until they are read again. */
	readonly #announced = new Map<Upstream, Set<ListName>>();
	#restored: Promise<void> | undefined;

	/** @param onChange - hears which lists changed after they had been given to a host. */
	constructor(
		upstreams: readonly Upstream[],
		deps: {
			readonly store: CatalogueStore;
			readonly log: Log;
			readonly onChange: (names: readonly ListName[]) => void;
		},
	) {
		this.#upstreams = upstreams;
		this.#store = deps.store;
		this.#log = deps.log;
		this.#onChange = deps.onChange;
	}

	/** What is known now, for whoever must not wait. */
	known(upstream: Upstream): UpstreamLists | undefined {
		return this.#known.get(upstream);
	}

	/** Reads what an earlier process kept. */
	restore(): Promise<void> {
		this.#restored ??= Promise.all(
			this.#upstreams.map(async (upstream) => {
				const lists = await this.#store.read(upstream.options.name).catch(() => undefined);
				if (lists && !this.#known.has(upstream)) this.#learn(upstream, lists);
			}),
		).then(() => {});
		return this.#restored;
	}

	/** The entry that a host knows by this name, as far as it is known now. */
	peek(name: ListName, hostName: string): Offer | undefined {
		return this.#merge(name).get(hostName);
	}

	/**
	 * One list of all upstreams by the name under which hosts know each entry. What is known is given at once and
	 * looked at again behind; an upstream that was never seen is waited for, though not long.
	 */
	async list(name: ListName): Promise<ReadonlyMap<string, Offer>> {
		await this.restore();
		await Promise.all(
			this.#upstreams.map(async (upstream) => {
				const reading = this.refresh(upstream);
				if (this.#known.has(upstream)) return;
				await new Promise<void>((resolve) => {
					const cancel = systemClock.after(FIRST_WAIT_MS, resolve);
					void reading.finally(() => {
						cancel();
						resolve();
					});
				});
			}),
		);
		return this.#merge(name);
	}

	/**
	 * The entry that a host knows by this name.
	 *
	 * @throws UPSTREAM_UNAVAILABLE when it is none, and an upstream that may have it cannot be asked.
	 */
	async find(name: ListName, hostName: string): Promise<Offer | undefined> {
		await this.restore();
		const found = this.#merge(name).get(hostName);
		if (found) return found;
		const errors: unknown[] = [];
		for (const upstream of this.#upstreams)
			if (!this.#fresh.has(upstream) && hostName.startsWith(prefixOf(upstream, name)))
				await this.#read(upstream).catch((error: unknown) => errors.push(error));
		const offer = this.#merge(name).get(hostName);
		if (!offer && errors.length > 0) throw new HoldfastError('UPSTREAM_UNAVAILABLE', messageOf(errors[0]));
		return offer;
	}

	/** Looks again at what an upstream offers, unless that was done on this connection. Never rejects. */
	async refresh(upstream: Upstream): Promise<void> {
		if (this.#fresh.has(upstream)) return;
		await this.#read(upstream).catch((error: unknown) =>
			this.#log.warn(
				{ upstream: upstream.options.name, error: messageOf(error) },
				'its lists cannot be read',
			),
		);
	}

	/** Hears from an upstream that a list is not what it was; tells it on once the list was read again. */
	changed(upstream: Upstream, name: ListName): void {
		const announced = this.#announced.get(upstream) ?? new Set();
		this.#announced.set(upstream, announced.add(name));
		this.#fresh.delete(upstream);
		void this.refresh(upstream);
	}

	#read(upstream: Upstream): Promise<void> {
		let reading = this.#reading.get(upstream);
		if (!reading) {
			reading = this.#readNow(upstream).finally(() => this.#reading.delete(upstream));
			this.#reading.set(upstream, reading);
		}
		return reading;
	}

	async #readNow(upstream: Upstream): Promise<void> {
		await upstream.connect();
		const lists = await readLists(upstream);
		const before = this.#known.get(upstream);
		this.#learn(upstream, lists);
		this.#fresh.add(upstream);
		const announced = this.#announced.get(upstream);
		this.#announced.delete(upstream);
		const changed = (['tools', 'prompts', 'resources', 'resourceTemplates'] as const).filter(
			(name) =>
				announced?.has(name) === true || JSON.stringify(before?.[name] ?? []) !== JSON.stringify(lists[name]),
		);
		if (changed.length === 0) return;
		this.#onChange(changed);
		await this.#store
			.write(upstream.options.name, lists)
			.catch((error: unknown) => this.#log.warn({ error: messageOf(error) }, 'the lists cannot be kept'));
	}

	#learn(upstream: Upstream, lists: UpstreamLists): void {
		this.#known.set(upstream, lists);
		this.#merged.clear();
	}

	#merge(name: ListName): ReadonlyMap<string, Offer> {
		const made = this.#merged.get(name);
		if (made) return made;
		const merged = new Map<string, Offer>();
		for (const upstream of this.#upstreams)
			for (const { tool, name: shown, entry, mappings, hiddenFrom } of this.#entries(upstream, name)) {
				if (name === 'tools' && upstream.options.tools[tool]?.visible === false) continue;
				const hostName = prefixOf(upstream, name) + shown;
				// Without its own tools the gateway could give nobody the result of a call that it handed over.
				const isOwn = name === 'tools' && isFallbackTool(hostName);
				// The first in the order of the configuration wins.
				if (!isOwn && !merged.has(hostName))
					merged.set(hostName, { upstream, name: tool, entry, mappings, hiddenFrom });
				else if (isNamed(name))
					this.#log.warn(
						{ upstream: upstream.options.name, list: name, name: hostName },
						'hosts do not see it, for the name is taken; set a prefix',
					);
			}
		this.#merged.set(name, merged);
		return merged;
	}

	#entries(upstream: Upstream, name: ListName): readonly FoldedTool[] {
		const entries = (this.#known.get(upstream) ?? NO_LISTS)[name];
		if (name === 'tools')
			return foldTools(entries, upstream.options.folds, ({ start }, reasons) =>
				this.#log.warn(
					{ upstream: upstream.options.name, tool: start.tool, reasons },
					'a family is not folded',
				),
			);
		return entries.flatMap((entry) => {
			const own = entry[keyOf(name)];
			if (typeof own !== 'string') return [];
			return [{ tool: own, name: own, entry, mappings: [], hiddenFrom: 'nobody' as const }];
		});
	}
}

function isNamed(name: ListName): boolean {
	return name === 'tools' || name === 'prompts';
}

/** What goes before the upstream's own name of an entry. */
function prefixOf({ options }: Upstream, name: ListName): string {
	return isNamed(name) ? options.prefix : '';
}

function keyOf(name: ListName): string {
	if (isNamed(name)) return 'name';
	return name === 'resources' ? 'uri' : 'uriTemplate';
}
