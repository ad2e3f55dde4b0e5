import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes in use after a collection of everything that nobody holds. */
export function heapBytes(): number {
	setFlagsFromString('--expose-gc');
	const collect = runInNewContext('gc') as () => void;
	for (let round = 0; round < 3; round++) collect();
	return process.memoryUsage().heapUsed;
}
