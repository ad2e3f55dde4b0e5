import { randomBytes } from 'node:crypto';
import type { Clock } from '../engine/clock.ts';
import type { EventStore, JSONRPCMessage } from './sdk.ts';

/** How much of a session's streams is kept for clients that come back with `Last-Event-ID`. */
export interface EventLimits {
	/** Default 1 MiB. */
	readonly maxEventBytes: number;
	/** Default 1,000. */
	readonly maxEvents: number;
	/** Default 10 minutes. */
	readonly eventLifeMs: number;
}

interface LoggedEvent {
	readonly id: string;
	readonly streamId: string;
	readonly message: JSONRPCMessage;
	readonly bytes: number;
	readonly atMs: number;
}

/**
 * The last events of one session. The ids of another session are unknown here, since each log has a secret of
 * its own in its ids, and so is an id whose event was dropped: a stream is never resumed with a gap.
 */
export class EventLog implements EventStore {
	readonly #limits: EventLimits;
	readonly #clock: Clock;
	readonly #secret = randomBytes(8).toString('hex');
	/** By id, oldest first. */
	readonly #events = new Map<string, LoggedEvent>();
	#bytes = 0;
	#serial = 0;

	constructor(limits: EventLimits, clock: Clock) {
		this.#limits = limits;
		this.#clock = clock;
	}

	async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
		const id = `${this.#secret}-${++this.#serial}`;
		const bytes = Buffer.byteLength(JSON.stringify(message));
		this.#events.set(id, { id, streamId, message, bytes, atMs: this.#clock.nowMs() });
		this.#bytes += bytes;
		this.drop();
		return id;
	}

	/** Whether a stream can be resumed after this event. */
	has(eventId: string): boolean {
		this.drop();
		return this.#events.has(eventId);
	}

	async replayEventsAfter(
		lastEventId: string,
		{ send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
	): Promise<string> {
		this.drop();
		const last = this.#events.get(lastEventId);
		if (!last) throw new Error('The event is not known any more');
		const events = [...this.#events.values()];
		for (const event of events.slice(events.indexOf(last) + 1)) {
			// The event that opens a stream has no message in it.
			if (event.streamId === last.streamId && 'jsonrpc' in event.message) await send(event.id, event.message);
		}
		return last.streamId;
	}

	/** Lets go of what is too old or too much. */
	drop(): void {
		const { maxEventBytes, maxEvents, eventLifeMs } = this.#limits;
		const bornAfterMs = this.#clock.nowMs() - eventLifeMs;
		for (const event of this.#events.values()) {
			const isTooMuch = this.#bytes > maxEventBytes || this.#events.size > maxEvents;
			if (!isTooMuch && event.atMs > bornAfterMs) return;
			this.#events.delete(event.id);
			this.#bytes -= event.bytes;
		}
	}
}
