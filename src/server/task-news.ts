import type { TaskRecord } from '../backend/record.ts';
import type { Engine } from '../engine/engine.ts';
import { isTerminal } from '../protocol/status.ts';
import type { Exchange } from './exchange.ts';
import { relatedTo, toLegacyTask } from './legacy-task.ts';

/**
 * Tells a client of 2025-11-25 how a task goes on that it created on this connection: each change of its status,
 * and its progress where the call had a token, which stays valid for the task's whole life. Nobody may rely on
 * it, so what cannot be sent is not sent again.
 */
export function tellTheNews(
	exchange: Exchange,
	engine: Engine,
	task: TaskRecord,
	progressToken: string | number | undefined,
): void {
	let told: TaskRecord = task;
	let sent = 0;
	let isReading = false;
	let isOutdated = false;
	const tell = (record: TaskRecord): void => {
		if (record.revision <= told.revision) return;
		const before = told;
		told = record;
		const { progress } = record;
		if (progressToken !== undefined && progress && progress !== before.progress && progress.progress > sent) {
			sent = progress.progress;
			notify('notifications/progress', relatedTo(record.taskId, { progressToken, ...progress }));
		}
		if (record.status === before.status) return;
		notify('notifications/tasks/status', { ...toLegacyTask(record, engine.nowMs()) });
		if (isTerminal(record.status)) stop();
	};
	const notify = (...message: Parameters<Exchange['notify']>): void => {
		exchange.notify(...message).catch(() => {});
	};
	const look = async (): Promise<void> => {
		isOutdated = true;
		if (isReading) return;
		isReading = true;
		while (isOutdated) {
			isOutdated = false;
			// What cannot be read now is looked at again when the watch comes by; a task that is gone has no news.
			await engine.get(task.taskId, task.principal).then(tell, () => {});
		}
		isReading = false;
	};
	const unwatch = engine.watch.on(task.taskId, () => void look());
	const stop = (): void => {
		unwatch();
		exchange.closed.removeEventListener('abort', stop);
	};
	exchange.closed.addEventListener('abort', stop, { once: true });
	void look();
}
